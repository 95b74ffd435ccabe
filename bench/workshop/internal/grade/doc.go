// Package grade looks at a learner's server from outside and says, in plain words, what holds and what
// does not. It counts and compares; it never judges by a clock, except that what has a deadline
// must not happen before it, and must happen at last.
//
// A figure per request is read twice: from the server's own counters, and by watching its system
// calls ([witness]). The larger one counts, and a difference is a finding of its own, since a counter can
// be made up.
//
// Exercises, their files and a learner's progress are package workshop's.
//
// [witness]: https://pkg.go.dev/github.com/qps-ladder/qps-ladder/bench/workshop/internal/witness
package grade

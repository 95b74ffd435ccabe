// Package harness builds a stage, or a variant of one, runs it as a process of its own, reads what
// it counts, and talks raw HTTP/1 to it. It returns errors: it knows no *testing.T, no command line
// and no report, and it judges nothing. What a right answer is, is package suite's to say; what to
// measure, and how, is said under bench.
package harness

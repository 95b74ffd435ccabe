// Package suite is the common test suite that every stage runs. It treats a server as a black box:
// the test binary starts itself again as a server process, talks to it over real sockets, and holds
// every byte that comes back to what the HTTP contract promises. So the same suite runs against a
// finished binary too (see [Program]). Processes, counters and connections are package harness's; what a
// right answer is, is said here.
//
// The conformance cases are data, in testdata/*.cases; testdata/README.md describes the format, and
// [Cases] gives them to other tests. What a server does in time, at its ends and at its limits is in
// [Behaviour]; what real clients make of it in [Clients]; what it costs in [Counters]; what it stands of
// its clients, the network and the kernel in [Hostile].
//
// A check takes a [Program] and a [T], which is a *testing.T or the workshop's grader: [CommonChecks].
//
// The tests are short unless flags of the test binary say otherwise: -soak and -churn are how long two of
// [Hostile] last, -connections how many are open at a time in a test of many, -seed what is drawn at random:
//
//	go test ./stage3-native-parser -run 'TestHostile/soak' -soak=60s
//
// Deadlines are tested from both sides: never before the time that was set, and at last within a
// bound so generous that only a server which hangs misses it. Nothing here asserts a speed.
package suite

// Package hostile tests a stage against what the network, its clients and its kernel do to a server that is left running:
// clients that dribble, stall, vanish or never read; uploads that are refused; no descriptor left; stops and restarts under
// load; system calls that fail in each way that their manual pages list.
//
// A stage's test calls [Run], in a binary that has suite.Main in its TestMain. What a test brings about ends with the same
// question: is the server as it was before? Descriptors, goroutines, connections, bytes held for connections and the heap
// after a collection must be back at their level at rest.
//
// The tests are short unless flags of the test binary say otherwise: -soak and -churn are how long two of them last,
// -connections how many are open at a time in a third, which is skipped without it.
//
//	go test ./stage3-native-parser -run 'TestHostile/soak' -soak=60s
//
// # Faults
//
// A server whose system calls fail is the test binary again, started under a name (a symbolic link) from which this package, when it
// is initialised, sees that it has to set netpoll.Fault. Rules for it come over a Unix socket beside the link. So a
// running server's calls can be made to fail, and then work again, without anything in the stage being there for it. It can record
// its calls too: in which order it served whom is known from inside only.
package hostile

// Package differential holds nothing but tests: they send the same bytes, cut at the same places, to the binaries of all
// stages, and require the same bytes back and the same end of the connection. Only the value of the Date field may
// differ.
//
// Where a connection is still open after the last answer can be seen from outside only by sending more. So every exchange
// ends in one of three ways: a request has said that it is the last; the client ends its side; or it sends zero bytes, which
// are no part of any request: a server that still listens answers them with 400, one that has closed does not. How many zero
// bytes that takes depends on where in a request the bytes end; model_test.go finds it out. No step waits for time to pass.
//
// What else a client does is drawn too: it reads late, or little at a time through the smallest window there is, and bytes are
// urgent.
//
// The inputs are the conformance cases, requests that a seeded generator makes and damages, and what `go test
// -fuzz=FuzzDifferential` thinks of; its corpus is in testdata/fuzz.
package differential

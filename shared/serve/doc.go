// Package serve is what the six stages share outside the path of a request: it reads the flags, sets
// GOMAXPROCS and the smallest heap alike, prints the ready line, stops on a signal, and shows counters and profiles on
// an admin listener.
//
// A stage's main is one call of [Main]. A test that runs a stage as a process of its own starts its own binary again,
// and calls [Run] there.
//
// When it serves, it prints one line on standard output:
//
//	ready stage=stage0-naive pid=123 addr=127.0.0.1:8080 workers=2 gomaxprocs=3
//
// with admin=127.0.0.1:9090 at its end if there is an admin listener. SIGTERM and SIGINT begin a
// graceful stop, which -grace bounds; a second signal ends it at once. The exit code is 0 then, 1 if it
// cannot serve (the port is taken, say), and 2 for a bad flag, with one line on standard error.
//
// Whatever runs once per request or per connection does not belong here: it is the stage's. Routes are package app's.
package serve

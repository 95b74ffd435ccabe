// Package profile says where the time of a stage goes: flame graphs, a table
// of categories, system calls, allocations, hardware counters, and the wrong
// turns that a profile would have warned of.
//
// Each of its commands starts a server, opens all connections, and only then
// starts to record; the recording ends when the last answer is there and before
// a connection is closed. So a record holds nothing but requests, and can be
// divided by their number.
//
// Comparing speeds is package run's; which variants of a stage there are is said in bench/variants.
package profile

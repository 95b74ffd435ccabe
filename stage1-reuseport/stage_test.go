package main

import (
	"testing"

	"github.com/qps-ladder/qps-ladder/shared/serve"
	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// TestMain lets the test binary be the server too: the suite starts it again as
// a process of its own.
func TestMain(m *testing.M) { suite.Main(m, serve.StageName(), newServer) }

// What every stage does alike.
func TestConformance(t *testing.T) { suite.Conformance(t) }
func TestBehaviour(t *testing.T)   { suite.Behaviour(t) }
func TestClients(t *testing.T)     { suite.Clients(t) }
func TestSystemCalls(t *testing.T) { suite.SystemCalls(t) }

// TestHostile is what clients, the network and the kernel do to a server.
func TestHostile(t *testing.T) { suite.Hostile(t) }

// TestViews shows what becomes of a header that a handler keeps.
func TestViews(t *testing.T) { suite.Views(t, suite.Intact) }

// TestCounters holds what a request costs at this stage.
func TestCounters(t *testing.T) {
	suite.Counters(t, suite.Promises{
		Handoffs:           suite.Exactly(0),
		TimerSettimes:      suite.Exactly(2),
		EpollCtls:          suite.Exactly(1),
		Reads:              suite.Exactly(1),
		HeapObjects:        suite.AtLeast(8),
		HeapObjectsForBody: suite.AtLeast(8),
		WritesFor16:        suite.Exactly(16),
		BodyBytesCopied:    suite.AtLeast(65536),
		IdleBytes:          suite.AtLeast(8192),
	})
}

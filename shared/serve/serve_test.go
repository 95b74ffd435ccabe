package serve

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// asStage, in the environment, makes the test binary a stage with a fake server, so that a test can
// send signals to a real process and read its exit code. Its value is the fake's manner.
const asStage = "QPS_LADDER_TEST_MANNER"

func TestMain(m *testing.M) {
	if manner := os.Getenv(asStage); manner != "" {
		Main("stage7-fake", func(c *Config) (Server, error) { return newFake(c, manner) })
	}
	os.Exit(m.Run())
}

// fake is a server that serves nothing. Its manner says how it takes a stop:
//
//	obedient  ends when drained
//	stubborn  ends when killed
//	stuck     never ends
//	dead      has ended before it was asked
//	taken     does not start
//	hungry    takes every descriptor there is, and ends when killed
//	none      cannot even be made
type fake struct {
	manner  string
	config  Config
	loops   []*netpoll.Published
	once    sync.Once
	drained chan struct{}
	ended   chan struct{}
	closed  bool
}

func newFake(c *Config, manner string) (*fake, error) {
	if manner == "none" {
		return nil, errors.New("no server can be made")
	}
	f := &fake{manner: manner, config: *c, drained: make(chan struct{}), ended: make(chan struct{})}
	for range c.Workers {
		f.loops = append(f.loops, new(netpoll.Published))
	}
	return f, nil
}

func (f *fake) Start() (string, error) {
	switch f.manner {
	case "taken":
		f.end()
		return "", &netpoll.AddressInUseError{Address: f.config.Addr}
	case "dead":
		f.end()
	case "hungry":
		for {
			// Not os.Open, which would make the runtime open what its timers need.
			if _, err := syscall.Open(os.DevNull, 0, 0); err != nil {
				return "192.0.2.1:80", nil
			}
		}
	}
	return "192.0.2.1:80", nil
}

func (f *fake) Drain() {
	close(f.drained)
	if f.manner == "obedient" {
		f.end()
	}
}

func (f *fake) Kill() {
	if f.manner == "stubborn" || f.manner == "hungry" {
		f.end()
	}
}

func (f *fake) end()  { f.once.Do(func() { close(f.ended) }) }
func (f *fake) Wait() { <-f.ended }
func (f *fake) Close() {
	select {
	case <-f.ended:
	default:
		panic("closed before the loops have ended")
	}
	if f.closed {
		panic("closed twice")
	}
	f.closed = true
}
func (f *fake) Loops() []*netpoll.Published { return f.loops }

// The command nbio is a server on github.com/lesismal/nbio: net/http's handlers
// on event loops.
package main

import (
	"net"

	"github.com/lesismal/nbio/logging"
	"github.com/lesismal/nbio/nbhttp"

	"github.com/qps-ladder/qps-ladder/bench/peers/internal/peer"
)

func main() {
	o := peer.Flags()
	logging.SetLevel(logging.LevelError)
	var address string
	engine := nbhttp.NewEngine(nbhttp.Config{
		Network: "tcp",
		Addrs:   []string{o.Addr},
		NPoller: o.Workers,
		MaxLoad: 1 << 20,
		Handler: peer.Mux(),
		// Its best settings here: a handler that does not block runs where its request was read, not in a
		// pool of goroutines, and up to 10,000 connections have a goroutine each; the rest are polled.
		ServerExecutor: func(f func()) { f() },
		IOMod:          nbhttp.IOModMixed,
		Listen: func(network, addr string) (net.Listener, error) {
			l, err := net.Listen(network, addr)
			if err == nil {
				address = l.Addr().String()
			}
			return l, err
		},
	})
	peer.Check(engine.Start())
	peer.Ready("nbio", address, o.Workers)
	peer.Wait()
}

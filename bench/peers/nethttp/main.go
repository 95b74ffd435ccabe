// The command nethttp is the standard library's server.
package main

import (
	"net"
	"net/http"

	"github.com/qps-ladder/qps-ladder/bench/peers/internal/peer"
)

func main() {
	o := peer.Flags()
	listener, err := net.Listen("tcp", o.Addr)
	peer.Check(err)
	go func() { peer.Check(http.Serve(listener, peer.Mux())) }()
	peer.Ready("net/http", listener.Addr().String(), 1)
	peer.Wait()
}

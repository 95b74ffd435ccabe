// The command fasthttp is a server on github.com/valyala/fasthttp.
package main

import (
	"net"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/qps-ladder/qps-ladder/bench/peers/internal/peer"
)

func main() {
	o := peer.Flags()
	listener, err := net.Listen("tcp", o.Addr)
	peer.Check(err)
	scratch := sync.Pool{New: func() any { return new([256]byte) }}
	server := &fasthttp.Server{
		Name:                         peer.Server,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		Concurrency:                  1 << 20,
		Handler: func(ctx *fasthttp.RequestCtx) {
			b := scratch.Get().(*[256]byte)
			code, contentType, body := peer.Serve(ctx.Method(), ctx.Path(), ctx.PostBody(), b[:])
			ctx.SetStatusCode(code)
			ctx.SetContentType(contentType)
			if contentType == peer.Binary {
				ctx.Response.SetBodyRaw(body) // it never changes, so it need not be copied
			} else {
				ctx.SetBody(body)
			}
			scratch.Put(b)
		},
	}
	go func() { peer.Check(server.Serve(listener)) }()
	peer.Ready("fasthttp", listener.Addr().String(), 1)
	peer.Wait()
}

// Package app is what every stage serves: the routes, and the answer to each. It knows nothing of
// sockets, so that the same handlers run behind six different servers.
//
// The routes, with HEAD wherever there is GET:
//
//	GET  /                      Hello, World!
//	GET  /api/status            {"status":"ok"}
//	POST /api/echo              the request's body, with its content type
//	GET  /users/{id}            {"id":"…"}
//	GET  /bytes/{n}             n bytes of a fixed pattern, at most 16 MiB
//	GET  /middleware/{n}        Hello, World! behind n layers that are plain calls (0 to 100)
//	GET  /async-middleware/{n}  the same, each layer a hop to another goroutine and back
//	GET  /static/{path}         a file, when Options.Static names a folder
//	OPTIONS *                   204, with the methods that there are
//
// Another path is 404; a known path with another method is 405 with Allow. Paths are matched after
// %XX was decoded, so /users/a%2Fb has two segments and is 404.
//
// Neither parsing (package http1) nor flags and signals (package serve) belong here.
package app

// One step of the ladder: a complete HTTP/1.1 server. README.md says what this
// step changes and what that brought; conn.go is the heart of the code.
package main

import "github.com/qps-ladder/qps-ladder/shared/serve"

func main() {
	serve.Main(serve.StageName(), newServer)
}

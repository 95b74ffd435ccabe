package grade

import (
	"fmt"
	"strconv"
)

func init() {
	behaviour("layers", "ten layers see every request, in order, on the way in and on the way out", talking(tenLayers))
	behaviour("layer-stops", "a layer can answer itself, and a panic still costs one connection", serving(layerStops, "-test-routes"))
}

// tracePath is what ten layers leave behind, in and out.
const tracePath = `"0123456789-9876543210"`

// tenLayers asks for the trace of a request, and for how many each layer has counted.
func tenLayers(c *connection) error {
	for range 3 {
		a, err := c.ask("GET / HTTP/1.1\r\nHost: a\r\nX-Trace: yes\r\n\r\n")
		if err != nil {
			return err
		}
		if got := a.Field("Etag"); got != tracePath {
			return fmt.Errorf("the trace of a request is %s, not %s", got, tracePath)
		}
	}
	counted := func(layer int) (int, error) {
		a, err := c.ask(fmt.Sprintf("GET / HTTP/1.1\r\nHost: a\r\nX-Count: %d\r\n\r\n", layer))
		if err != nil {
			return 0, err
		}
		text, err := strconv.Unquote(a.Field("Etag"))
		if err != nil {
			return 0, fmt.Errorf("layer %d does not say how many requests it has seen", layer)
		}
		return strconv.Atoi(text)
	}
	for _, layer := range []int{0, 4, 9} {
		before, err := counted(layer)
		if err != nil {
			return err
		}
		const n = 50
		for range n {
			if err := c.hello(); err != nil {
				return err
			}
		}
		after, err := counted(layer)
		if err != nil {
			return err
		}
		if after-before != n+1 {
			return fmt.Errorf("layer %d saw %d of %d ordinary requests", layer, after-before-1, n)
		}
	}
	return nil
}

func layerStops(server *Server) error {
	for layer := range 10 {
		c, err := server.dial()
		if err != nil {
			return err
		}
		if err := c.send(fmt.Sprintf("GET / HTTP/1.1\r\nHost: a\r\nX-Stop-At: %d\r\n\r\n", layer), helloRequest); err != nil {
			return err
		}
		if err := c.expect(503, "503 Service Unavailable\n"); err != nil {
			return fmt.Errorf("with X-Stop-At: %d: %w", layer, err)
		}
		if err := c.expect(200, greeting); err != nil {
			return fmt.Errorf("after a request that layer %d stopped: %w", layer, err)
		}
	}
	c, err := server.dial()
	if err != nil {
		return err
	}
	if err := c.send("GET /test/panic HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err
	}
	if err := c.expect(500, "500 Internal Server Error\n"); err != nil {
		return fmt.Errorf("a handler that panics: %w", err)
	}
	if err := server.helloOver(3); err != nil {
		return fmt.Errorf("after a handler's panic: %w", err)
	}
	return nil
}

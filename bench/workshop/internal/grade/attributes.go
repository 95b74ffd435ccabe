package grade

import (
	"errors"
	"fmt"
	"strings"
)

func init() {
	behaviour("panic-says-which", "the line about a panic still says which request of its connection it was", panicSaysWhich)
}

// panicSaysWhich has a handler panic at the third request of a connection.
func panicSaysWhich(s *Subject) error {
	for _, before := range []int{2, 0, 5} {
		server, err := s.serve("-workers", "1", "-test-routes")
		if err != nil {
			return err
		}
		defer server.Kill()
		c, err := dial(server.Ready.Address)
		if err != nil {
			return err
		}
		defer c.Close()
		for range before {
			if err := c.hello(); err != nil {
				return err
			}
		}
		a, err := c.ask("GET /test/panic HTTP/1.1\r\nHost: a\r\n\r\n")
		if err != nil {
			return err
		}
		if a.Status != 500 || !a.Closes() {
			return fmt.Errorf("the answer was %d", a.Status)
		}
		if err := server.Stop(); err != nil {
			return err
		}
		line := server.Stderr()
		if strings.Count(line, "\n") != 1 {
			return errors.New("it is not one line")
		}
		if want := fmt.Sprintf("(request=%d)", before+1); !strings.Contains(line, want) {
			return fmt.Errorf("after %d requests it does not say %s", before, want)
		}
	}
	return nil
}

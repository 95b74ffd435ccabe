package serve

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// ReportPanic writes one line about a handler that panicked with value to Err,
// with the stack of the goroutine that calls it. It may be called from any
// goroutine.
func (c *Config) ReportPanic(request *http1.Request, value any) {
	stack := strings.ReplaceAll(strings.TrimSpace(string(debug.Stack())), "\n", " | ")
	fmt.Fprintf(c.Err, "%s: the handler of %s %q panicked: %s; stack: %s\n",
		c.Stage, request.Method, request.Path, strings.ReplaceAll(fmt.Sprint(value), "\n", " | "), stack)
}

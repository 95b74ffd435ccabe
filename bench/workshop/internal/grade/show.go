package grade

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"
)

// shown writes what the clients of this process send and get, if there is an out.
var shown struct {
	sync.Mutex
	out    io.Writer
	began  time.Time
	limits showLimits
	number int
	lines  int
}

// showLimits are how many pieces are shown, and how many bytes of each.
type showLimits struct{ lines, bytes int }

// A figure is counted over thousands of requests that look alike: the first say what they are. A behaviour is about bytes.
var (
	limitsOfFigure    = showLimits{lines: 24, bytes: 240}
	limitsOfBehaviour = showLimits{lines: 200, bytes: math.MaxInt}
)

// Show has what the clients of check send and get written to out, until stop is called: every byte if it is a behaviour, the
// beginning if it is a figure. Clients of the common suite are not among them.
func Show(out io.Writer, check Check) (stop func()) {
	limits := limitsOfBehaviour
	if check.Figure != "" {
		limits = limitsOfFigure
	}
	shown.Lock()
	defer shown.Unlock()
	shown.out, shown.began, shown.limits, shown.number, shown.lines = out, time.Now(), limits, 0, 0
	return func() {
		shown.Lock()
		defer shown.Unlock()
		if more := shown.lines - limits.lines; more > 0 {
			fmt.Fprintf(shown.out, "… and %d pieces more\n", more)
		}
		shown.out = nil
	}
}

// newNumber is that of the next connection.
func newNumber() int {
	shown.Lock()
	defer shown.Unlock()
	shown.number++
	return shown.number
}

// showBytes shows a piece in one direction, quoted: nothing in it reaches the terminal as it is.
func showBytes(connection int, direction, bytes string) {
	shown.Lock()
	defer shown.Unlock()
	if shown.out == nil || bytes == "" {
		return
	}
	if shown.lines++; shown.lines > shown.limits.lines {
		return
	}
	text := strconv.QuoteToASCII(bytes[:min(len(bytes), shown.limits.bytes)])
	if more := len(bytes) - shown.limits.bytes; more > 0 {
		text += fmt.Sprintf(" … and %d bytes more", more)
	}
	fmt.Fprintf(shown.out, "%8.3f ms  %d %s %s\n", float64(time.Since(shown.began))/1e6, connection, direction, text)
}

// heard shows what is read.
type heard struct {
	io.Reader
	number int
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	showBytes(h.number, "<", string(p[:max(n, 0)]))
	if err != nil {
		showBytes(h.number, "<", "["+plain(err).Error()+"]")
	}
	return n, err
}

package grade

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// shown writes what the clients of this process send and get, if there is an out.
var shown struct {
	sync.Mutex
	out    io.Writer
	began  time.Time
	number int
	lines  int
}

// mostLines is how many pieces are shown: a figure is counted over thousands of requests.
const mostLines = 200

// Show has every byte that clients send and get written to out, until stop is called. Clients of the common suite are not
// among them.
func Show(out io.Writer) (stop func()) {
	shown.Lock()
	defer shown.Unlock()
	shown.out, shown.began, shown.number, shown.lines = out, time.Now(), 0, 0
	return func() {
		shown.Lock()
		defer shown.Unlock()
		if more := shown.lines - mostLines; more > 0 {
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
	if shown.lines++; shown.lines <= mostLines {
		fmt.Fprintf(shown.out, "%8.3f ms  %d %s %s\n", float64(time.Since(shown.began))/1e6, connection, direction, strconv.QuoteToASCII(bytes))
	}
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

package suite

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"
)

// upload is one that is refused. Its body is larger than the server takes, or is for nobody, and smaller than what the
// server reads and drops after its answer.
type upload struct {
	name, path string
	header     string // besides those that the client sends by itself
	value      string
	length     int
	chunked    bool
	status     int
}

var uploads = []upload{
	{"declared too large", "/api/echo", "", "", 200 << 10, false, 413},
	{"chunked too large", "/api/echo", "", "", 200 << 10, true, 413},
	{"too large after asking", "/api/echo", "Expect", "100-continue", 200 << 10, false, 413},
	{"an expectation that nobody meets", "/api/echo", "Expect", "the-best", 200 << 10, false, 417},
	{"for nobody", "/nowhere", "", "", 60 << 10, false, 404},
	{"too large after asking, none of it sent", "/api/echo", "Expect", "100-continue", 50 << 20, false, 413},
	{"for nobody after asking", "/nowhere", "Expect", "100-continue", 60 << 10, false, 404},
	{"for nobody, chunked", "/nowhere", "", "", 60 << 10, true, 404},
	{"for nobody, too large", "/nowhere", "", "", 200 << 10, false, 413},
	{"to what is only read", "/", "", "", 60 << 10, false, 405},
}

const uploadLimit = "65536"

// An upload that is refused shows net/http's client its answer, each time, and never a reset.
func goRefusedUploads(t T, p Program) {
	s, client := p.Start(t, "-max-body", uploadLimit, "-linger-timeout", "1h"), goClient(t)
	for range thorough(5, 2) {
		for _, u := range uploads {
			body := io.Reader(bytes.NewReader(make([]byte, u.length)))
			if u.chunked {
				body = struct{ io.Reader }{body} // of unknown length
			}
			request := newRequest(t, "POST", "http://"+s.Ready.Address+u.path, body)
			if u.header != "" {
				request.Header.Set(u.header, u.value)
			}
			answer, text := do(t, client, request)
			require.Equal(t, u.status, answer.StatusCode, u.name)
			require.Equal(t, standardError(u.status).Body, string(text), u.name)
		}
	}
}

// So does curl.
func curlRefusedUploads(t T, p Program) {
	path := tool(t, "curl")
	s := p.Start(t, "-max-body", uploadLimit, "-linger-timeout", "1h")
	file := filepath.Join(t.TempDir(), "upload")
	for _, u := range uploads {
		require.NoError(t, os.WriteFile(file, make([]byte, min(u.length, 4<<20)), 0o600))
		field := "Expect:" // curl would ask before a large body
		if u.header != "" {
			field = u.header + ": " + u.value
		}
		args := []string{"-sS", "--max-time", "20", "-H", field, "--data-binary", "@" + file, "-w", "%{http_code}"}
		if u.chunked {
			args = append(args, "-H", "Transfer-Encoding: chunked")
		}
		for range thorough(3, 1) {
			out := runTool(t, path, append(args, "http://"+s.Ready.Address+u.path)...)
			require.Equal(t, standardError(u.status).Body+fmt.Sprint(u.status), out, u.name)
		}
	}
}

package hostile

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
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
	{"for nobody, chunked", "/nowhere", "", "", 60 << 10, true, 404},
	{"for nobody, too large", "/nowhere", "", "", 200 << 10, false, 413},
	{"to what is only read", "/", "", "", 60 << 10, false, 405},
}

const uploadLimit = "65536"

// net/http's client sees the answer, each time, and never a reset.
func refusedUploads(t *testing.T) {
	s := suite.Start(t, "-max-body", uploadLimit)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := http.Client{Transport: transport, Timeout: patience}
	for range 5 {
		for _, u := range uploads {
			body := io.Reader(bytes.NewReader(make([]byte, u.length)))
			if u.chunked {
				body = struct{ io.Reader }{body} // of unknown length
			}
			request, err := http.NewRequest("POST", "http://"+s.Addr+u.path, body)
			require.NoError(t, err)
			if u.header != "" {
				request.Header.Set(u.header, u.value)
			}
			answer, err := c.Do(request)
			require.NoError(t, err, u.name)
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			require.NoError(t, err, u.name)
			require.Equal(t, u.status, answer.StatusCode, u.name)
			require.True(t, strings.HasPrefix(string(text), fmt.Sprint(u.status, " ")), "%s: %q", u.name, text)
		}
	}
}

// So does curl.
func refusedUploadsOfCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl here")
	}
	s := suite.Start(t, "-max-body", uploadLimit)
	for _, u := range uploads {
		line := []string{"--silent", "--show-error", "--max-time", "20", "--data-binary", "@-", "--write-out", " %{http_code}"}
		if u.header != "" {
			line = append(line, "--header", u.header+": "+u.value)
		} else {
			line = append(line, "--header", "Expect:") // curl would ask before a large body
		}
		if u.chunked {
			line = append(line, "--header", "Transfer-Encoding: chunked")
		}
		command := exec.Command(curl, append(line, "http://"+s.Addr+u.path)...)
		command.Stdin = bytes.NewReader(make([]byte, u.length))
		var out, errors bytes.Buffer
		command.Stdout, command.Stderr = &out, &errors
		require.NoError(t, command.Run(), "%s: %s", u.name, errors.String())
		require.Empty(t, errors.String(), u.name)
		require.Regexp(t, fmt.Sprintf(`^%d .*\n %d$`, u.status, u.status), out.String(), u.name)
	}
}

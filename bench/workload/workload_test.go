package workload

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryWorkloadIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range All() {
		require.False(t, seen[w.Name], "%s is there twice", w.Name)
		seen[w.Name] = true
		require.NotEmpty(t, w.Summary)
		require.Positive(t, w.Connections)
		require.Positive(t, w.Pipeline)
		require.NotEmpty(t, w.Body, w.Name)

		// One request, no byte after it, and one that the standard library reads.
		reader := bufio.NewReader(bytes.NewReader(w.Request))
		request, err := http.ReadRequest(reader)
		require.NoError(t, err, w.Name)
		_, err = io.Copy(io.Discard, request.Body)
		require.NoError(t, err, w.Name)
		_, err = reader.ReadByte()
		require.ErrorIs(t, err, io.EOF, w.Name)
		require.Equal(t, w.Reconnect, request.Close, w.Name)
	}
}

func TestBrowserIsWhatItSays(t *testing.T) {
	w, err := ByName("browser")
	require.NoError(t, err)
	require.Equal(t, 14+1+1+1, bytes.Count(w.Request, []byte("\r\n"))+1, "14 fields, a request line, an empty line")
	require.InDelta(t, 800, len(w.Request), 60)
}

func TestUnknownNameListsAll(t *testing.T) {
	_, err := ByName("helo")
	require.ErrorContains(t, err, `no workload "helo"`)
	for _, w := range All() {
		require.ErrorContains(t, err, w.Name)
	}
}

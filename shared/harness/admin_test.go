package harness

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A connection that the server ends before it has carried any request costs nothing but another one.
func TestAdminAsksAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		first, err := l.Accept()
		if err != nil {
			return
		}
		first.Read(make([]byte, 4096))
		first.Close()
		http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }))
	}()
	s := &Server{Ready: Ready{Admin: l.Addr().String()}, client: &http.Client{}}
	defer s.client.CloseIdleConnections()
	body, err := s.get(t.Context(), "/")
	require.NoError(t, err)
	require.Equal(t, "fine", string(body))
}

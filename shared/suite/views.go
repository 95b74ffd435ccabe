package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// KeptView is what a handler that wrongly keeps a header value finds in it after the request.
type KeptView string

const (
	// Intact: the value is a string of its own, which lives as long as anybody wants it.
	Intact KeptView = "intact"
	// Overwritten: the value is a view, and with -poison nobody can miss that it is dead.
	Overwritten KeptView = "overwritten"
)

// Views has a handler keep a header value, which is forbidden, and looks at what became of it when the
// request was over and its bytes were overwritten (-poison).
func Views(test *testing.T, want KeptView) {
	test.Parallel()
	t, p := ofTest(test)
	s := p.Start(t, "-poison", "-test-routes", "-workers", "1")
	value := strings.Repeat("kept", 10)
	// Behind so much padding that the next request does not reach it: only the poison does.
	keep := "GET /test/keep HTTP/1.1\r\nHost: a\r\nX-Padding: " + strings.Repeat("p", 4000) + "\r\nX-Keep: " + value + "\r\n\r\n"
	keeper, reader := dial(t, s), dial(t, s)
	keeper.send(t, keep)
	keeper.expect(t, Expected{Status: 200, Type: PlainText, Body: "kept\n"})
	reader.send(t, "GET /test/kept HTTP/1.1\r\nHost: a\r\n\r\n")
	answer, err := reader.answer(false)
	require.NoError(t, err)
	require.Equal(t, 200, answer.Status)
	require.Len(t, answer.Body, len(value))
	if want == Intact {
		require.Equal(t, value, string(answer.Body))
		return
	}
	require.NotContains(t, string(answer.Body), "kept", "a view outlived its request, and nobody noticed")
	// All of it, and with a byte that stands out.
	require.Equal(t, strings.Repeat(string(answer.Body[:1]), len(value)), string(answer.Body))
}

package serve

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

func TestReportPanicIsOneLineWithTheStack(t *testing.T) {
	var b bytes.Buffer
	c := &Config{Stage: "stage7-fake", Err: &b}
	func() {
		defer func() { c.ReportPanic(&http1.Request{Method: "GET", Path: "/a\nb"}, recover()) }()
		panic("two\nlines")
	}()
	text := b.String()
	require.True(t, strings.HasPrefix(text, `stage7-fake: the handler of GET "/a\nb" panicked: two | lines; stack: `), text)
	require.Equal(t, len(text)-1, strings.IndexByte(text, '\n'), "one line")
	require.Contains(t, text, "panic_test.go:")
}

func TestStageNameIsTheFolder(t *testing.T) {
	require.Equal(t, "serve", StageName())
}

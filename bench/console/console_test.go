package console

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 51234: "51,234", 1234567: "1,234,567", -123: "-123", -1234: "-1,234"} {
		require.Equal(t, want, Thousands(n))
	}
	require.Equal(t, "51,235", Thousands(51234.6))
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{"one two", "  three", "  four"}, Wrap("one two three four", 8, "  "))
	require.Equal(t, []string{"kept  as", "", "is"}, Wrap("kept  as\n\nis", 8, ""))
	require.Equal(t, []string{"a", "wordthatistoolong", "b"}, Wrap("a wordthatistoolong b", 8, ""))
	require.Equal(t, []string{"    wordthatistoolong"}, Wrap("    wordthatistoolong", 8, ""))
	require.Equal(t, []string{"测量 优化", "性能"}, Wrap("测量 优化 性能", 9, ""), "two columns each")
	require.Equal(t, "· words of a note", Paragraph("· ", "  ", " words\n of  a note "))
	require.Equal(t, "label:", Paragraph("label: ", "", ""))
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	Table(&out, [][]string{{"", "one", "µs"}, {"name", "12.5"}, {"", "1", "–"}, {}})
	require.Equal(t, "       one  µs\nname  12.5\n         1   –\n\n", out.String())
}

func TestNoTerminal(t *testing.T) {
	require.Zero(t, Columns(&bytes.Buffer{}))
	require.False(t, IsTerminal(&bytes.Buffer{}))
}

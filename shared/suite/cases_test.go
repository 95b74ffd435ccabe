package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllCasesLoad(t *testing.T) {
	cases, err := Cases()
	require.NoError(t, err)
	require.Greater(t, len(cases), 600)
	files := map[string]int{}
	for _, c := range cases {
		files[c.File]++
		require.Regexp(t, `^RFC \d+ `, c.RFC, "%s:%d", c.File, c.Line)
		require.LessOrEqual(t, c.Certain, len(c.Bytes))
		for i, answer := range c.Answers[:max(len(c.Answers)-1, 0)] {
			require.Less(t, answer.Status/100, 5, "%s: answer %d", c.Name, i)
			require.NotEqual(t, "close", answer.Connection, "%s: answer %d closes, and others follow", c.Name, i)
		}
	}
	t.Logf("%d cases: %v", len(cases), files)
}

// The borders in limits.cases are what they claim to be.
func TestBordersAreExact(t *testing.T) {
	cases, err := Cases()
	require.NoError(t, err)
	byName := map[string]Case{}
	for _, c := range cases {
		byName[c.Name] = c
	}
	get := func(name string) string {
		c, ok := byName[name]
		require.True(t, ok, name)
		return string(c.Bytes)
	}
	certain := func(name string) int { return byName[name].Certain }

	require.Len(t, get("the longest head"), 8192)
	require.Len(t, strings.TrimPrefix(get("the longest head after an empty line"), "\r\n"), 8192)
	require.Len(t, get("a head one byte too long"), 8193)
	_, second, _ := strings.Cut(get("the longest head behind a request"), "\r\n\r\n")
	require.Len(t, second, 8192)
	head, _, _ := strings.Cut(get("the longest head with a body"), "\r\n\r\n")
	require.Len(t, head+"\r\n\r\n", 8192)
	require.Equal(t, 8193, certain("a field that does not end"))
	require.Equal(t, 8193, certain("two Hosts before a head too long"))

	for _, name := range []string{"the longest target", "the longest path", "the longest target in absolute-form"} {
		require.Len(t, strings.Fields(get(name))[1], 4096, name)
	}
	for _, name := range []string{"a target one byte too long (/)", "a target in absolute-form one byte too long", "a target that does not end"} {
		require.Equal(t, len("GET ")+4097, certain(name), name)
	}
	fields := func(name string) int { return strings.Count(get(name), "\r\n") - 2 }
	require.Equal(t, 64, fields("the most fields"))
	require.Equal(t, 64, fields("the most fields, the content type last"))
	require.Equal(t, 65, fields("one field too many"))

	behindHead := func(name string) string {
		_, body, _ := strings.Cut(get(name), "\r\n\r\n")
		return body
	}
	require.Len(t, behindHead("the largest body"), 1<<20)
	line, _, _ := strings.Cut(behindHead("the longest chunk line"), "\r\n")
	require.Len(t, line, 256)
	line, _, _ = strings.Cut(behindHead("the longest chunk size"), "\r\n")
	require.Len(t, line, 256)
	start := func(name string) int { return strings.Index(get(name), "\r\n\r\n") + 4 }
	for _, name := range []string{"a chunk extension one byte too long (3)", "a chunk extension one byte too long (0)", "a chunk size one byte too long"} {
		require.Equal(t, 257, certain(name)-start(name), name)
	}
	require.Len(t, strings.TrimPrefix(behindHead("the longest trailers"), "0\r\n"), 8192)
	require.Len(t, strings.TrimPrefix(behindHead("trailers one byte too long"), "0\r\n"), 8193)
	require.Equal(t, 8193, certain("trailers that do not end")-start("trailers that do not end")-len("0\r\n"))
}

func TestParseCases(t *testing.T) {
	cases, err := ParseCases("x.cases", `# a comment
case: first
rfc: RFC 1 2
why: one
why: two
send:
| GET {{repeat "a" 3}}\r\n\x00"{{here}}
# in between
|  b{{fill "xy" 21}}
answer: 100
answer: 404
  connection: none
  allow: GET
then: closed

case: second
each: a b\x20
rfc: RFC 1
why: x
send:
| {{it}}
answer: 200 head
  type: {{it}}
  length: 7
then: open
`)
	require.NoError(t, err)
	require.Len(t, cases, 3)
	first := cases[0]
	require.Equal(t, "first", first.Name)
	require.Equal(t, 2, first.Line)
	require.Equal(t, "one two", first.Why)
	require.Equal(t, "GET aaa\r\n\x00\" bxyxyxyxy", string(first.Bytes))
	require.Equal(t, 11, first.Certain)
	require.True(t, first.Closed)
	require.Equal(t, []Expected{{Status: 100}, {Status: 404, Type: PlainText, Body: "404 Not Found\n", Allow: "GET"}}, first.Answers)
	require.Equal(t, "second (a)", cases[1].Name)
	require.Equal(t, "b ", string(cases[2].Bytes))
	require.Equal(t, 2, cases[2].Certain)
	require.Equal(t, []Expected{{Status: 200, Bodiless: true, Type: "a", Length: 7}}, cases[1].Answers)
	require.False(t, cases[1].Closed)
}

func TestBadCases(t *testing.T) {
	const good = "case: c\nrfc: RFC 1\nwhy: w\nsend:\n| a\nanswer: 400\nthen: closed\n"
	cases, err := ParseCases("x", good)
	require.NoError(t, err)
	require.Equal(t, []Expected{Refusal(400)}, cases[0].Answers)
	for change, message := range map[string]string{
		"| a=| a ":                             "x:5: a blank at the end",
		"| a=| \\q":                            "x:5: bad escape",
		"| a=| {{repeat 3}}":                   "x:5: {{repeat 3}}: want a quoted text",
		"| a={{{":                              "x:5: want key: value",
		"| a=| {{repeat \"a\" 3":               "{{ without }}",
		"| a=| {{repeat \"a\" -1}}":            "want a number",
		"| a=| {{nothing \"a\" 1}}":            "unknown helper",
		"| a=| aaa{{fill \"bb\" 4}}":           "not a multiple",
		"| a=| {{here}}a{{here}}":              "{{here}} twice|want a quoted text",
		"| a=":                                 "sends nothing",
		"send:=send: x":                        "the bytes stand",
		"send:\n=":                             "bytes without a send: before them",
		"answer: 400=answer:":                  "without a status",
		"answer: 400=answer: 299":              "unknown status",
		"answer: 400=answer: 400 tea":          "unknown word",
		"answer: 400\n=":                       "nothing can be awaited",
		"then: closed=then: ajar":              "want then: open",
		"then: closed\n=":                      "needs a then: line",
		"why: w=why:":                          "needs a name",
		"why: w=because: w":                    "unknown key",
		"case: c\n=":                           "before the first case",
		"then: closed=  size: 3":               "unknown property",
		"then: closed=shut: before":            "want shut: after",
		"then: closed=shut: after\nthen: open": "the server closes too",
	} {
		old, new, _ := strings.Cut(change, "=")
		text := strings.Replace(good, old, new, 1)
		require.NotEqual(t, good, text)
		_, err := ParseCases("x", text)
		require.Error(t, err, text)
		require.Regexp(t, quoteAlternatives(message), err.Error(), text)
	}
}

func quoteAlternatives(message string) string {
	var quoted []string
	for _, one := range strings.Split(message, "|") {
		quoted = append(quoted, strings.NewReplacer("{", `\{`, "}", `\}`, "(", `\(`, ")", `\)`).Replace(one))
	}
	return strings.Join(quoted, "|")
}

func TestPiecesJoinToTheWhole(t *testing.T) {
	for _, n := range []int{1, 2, 100, 5000, 100_000} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)
		}
		for seed := range uint64(5) {
			require.Equal(t, b, join(randomPieces(b, seed)))
		}
		require.Equal(t, b, join(bytePieces(b)))
		require.LessOrEqual(t, len(bytePieces(b)), 2*byteByByte+1000)
	}
}

func join(pieces [][]byte) []byte {
	var b []byte
	for _, piece := range pieces {
		b = append(b, piece...)
	}
	return b
}

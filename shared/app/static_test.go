package app

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

const testMemory = 1 << 20

func newStatic(t testing.TB, folder string) *App {
	return newApp(t, Options{Static: folder, StaticMemory: testMemory})
}

func TestStatic(t *testing.T) {
	folder := t.TempDir()
	inside := filepath.Join(folder, "site")
	modified := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	write := func(name, text string) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		require.NoError(t, os.Chtimes(path, modified, modified))
	}
	write("secret.txt", "secret")
	write("site/index.html", "<p>home")
	write("site/a/index.html", "<p>a")
	write("site/a/b.CSS", "p{}")
	write("site/a/two words", "words")
	write("site/.hidden", "hidden")
	write("site/.git/config", "hidden")
	write("site/empty.txt", "")
	if runtime.GOOS != "windows" {
		for name, target := range map[string]string{
			"out.txt": "../secret.txt", "back.css": "../site/a/b.CSS", "absolute": inside + "/index.html", "loop": "loop",
			"in.css": "a/b.CSS", "folder": "a", "here": ".", "chain": "./a//../in.css", "a/up.css": "../folder/b.CSS", "below": "a/b.CSS/",
			"seen": ".hidden", "repository": ".git", "twice": "seen", "a/seen": "../.git/config", "none.txt": "nowhere",
		} {
			require.NoError(t, os.Symlink(target, filepath.Join(inside, name)))
		}
	}
	a := newStatic(t, inside)

	for path, want := range map[string]struct {
		status            int
		contentType, body string
	}{
		"/static/":                  {200, "text/html; charset=utf-8", "<p>home"},
		"/static/index.html":        {200, "text/html; charset=utf-8", "<p>home"},
		"/static/a/":                {200, "text/html; charset=utf-8", "<p>a"},
		"/static/a/b.CSS":           {200, "text/css; charset=utf-8", "p{}"},
		"/static/a/two words":       {200, "application/octet-stream", "words"},
		"/static/empty.txt":         {200, http1.TextPlain, ""},
		"/static/a":                 {404, http1.TextPlain, "404 Not Found\n"},
		"/static":                   {404, http1.TextPlain, "404 Not Found\n"},
		"/static/none":              {404, http1.TextPlain, "404 Not Found\n"},
		"/static/none/":             {404, http1.TextPlain, "404 Not Found\n"},
		"/static/../secret.txt":     {404, http1.TextPlain, "404 Not Found\n"},
		"/static/a/../index.html":   {404, http1.TextPlain, "404 Not Found\n"},
		"/static/./index.html":      {404, http1.TextPlain, "404 Not Found\n"},
		"/static//index.html":       {404, http1.TextPlain, "404 Not Found\n"},
		"/static//etc/passwd":       {404, http1.TextPlain, "404 Not Found\n"},
		"/static/a//":               {404, http1.TextPlain, "404 Not Found\n"},
		"/static/.hidden":           {404, http1.TextPlain, "404 Not Found\n"},
		"/static/.git/config":       {404, http1.TextPlain, "404 Not Found\n"},
		"/static/out.txt":           {404, http1.TextPlain, "404 Not Found\n"},
		"/static/index.html\x00":    {404, http1.TextPlain, "404 Not Found\n"},
		"/static/index.html/":       {404, http1.TextPlain, "404 Not Found\n"},
		"/static/a\\..\\..\\secret": {404, http1.TextPlain, "404 Not Found\n"},
	} {
		s := serve(a, "GET", path)
		require.Equal(t, want.status, s.Status, path)
		require.Equal(t, want.contentType, s.ContentType, path)
		require.Equal(t, want.body, string(s.Body), path)
		require.True(t, s.Stable, path)
		if want.status != 200 {
			require.Empty(t, s.ETag+s.LastModified, path)
		}
	}
	if runtime.GOOS != "windows" {
		for _, name := range []string{"in.css", "folder/b.CSS", "here/here/in.css", "chain", "a/up.css", "folder/up.css"} {
			require.Equal(t, "p{}", string(serve(a, "GET", "/static/"+name).Body), name)
		}
		for _, name := range []string{"out.txt", "back.css", "absolute", "loop", "folder", "here", "below", "in.css/b.CSS", strings.Repeat("here/", 41) + "in.css",
			"seen", "repository/config", "twice", "a/seen", "folder/seen", "none.txt"} {
			require.Equal(t, 404, serve(a, "GET", "/static/"+name).Status, name)
		}
	}
	require.Equal(t, 405, serve(a, "POST", "/static/index.html").Status)

	require.Equal(t, 404, serve(newStatic(t, filepath.Join(folder, "none")), "GET", "/static/").Status)
}

// ask asks for a file under conditions.
func ask(a *App, method, path string, conditions http.Header) http1.Response {
	var s http1.Response
	a.Serve(&http1.Request{Method: method, Path: path, Headers: conditions}, &s)
	return s
}

func writeFile(t testing.TB, path, text string, modified time.Time) {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	require.NoError(t, os.Chtimes(path, modified, modified))
}

var longAgo = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)

func TestConditions(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "index.html"), "<p>home", longAgo)
	a := newStatic(t, folder)
	first := serve(a, "HEAD", "/static/")
	require.Equal(t, 200, first.Status)
	require.Equal(t, "Fri, 02 Jan 2026 03:04:05 GMT", first.LastModified)
	tag := first.ETag
	require.Regexp(t, `^"[^"]+"$`, tag, "a strong tag")
	const same, before, after = "Fri, 02 Jan 2026 03:04:05 GMT", "Fri, 02 Jan 2026 03:04:04 GMT", "Fri, 02 Jan 2026 03:04:06 GMT"
	for _, c := range []struct {
		name, section string
		status        int
		conditions    http.Header
	}{
		{"none", "13.2.2", 200, nil},
		{"same tag", "13.1.2", 304, http.Header{"If-None-Match": {tag}}},
		{"same tag, weak, in a list", "8.8.3.2", 304, http.Header{"If-None-Match": {`"x", W/` + tag}}},
		{"same tag in the second line", "5.3", 304, http.Header{"If-None-Match": {`"x"`, tag}}},
		{"same tag behind empty members", "5.6.1.2", 304, http.Header{"If-None-Match": {"", ", ,\t" + tag + " ,"}}},
		{"same tag behind one with a comma", "8.8.3", 304, http.Header{"If-None-Match": {`"a,b", ` + tag}}},
		{"same tag inside another", "8.8.3", 200, http.Header{"If-None-Match": {`"a,` + tag[1:]}}},
		{"no quotes", "8.8.3", 200, http.Header{"If-None-Match": {strings.Trim(tag, `"`)}}},
		{"w/ in small", "8.8.3", 200, http.Header{"If-None-Match": {"w/" + tag}}},
		{"half a tag", "8.8.3", 200, http.Header{"If-None-Match": {tag[:len(tag)-1]}}},
		{"half a tag, and one", "8.8.3", 200, http.Header{"If-None-Match": {`"x ` + tag}}},
		{"tags without a comma", "5.6.1", 200, http.Header{"If-None-Match": {`"x" ` + tag}}},
		{"any tag", "13.1.2", 304, http.Header{"If-None-Match": {"*"}}},
		{"any tag is no member", "13.1.2", 200, http.Header{"If-None-Match": {`"x", *`}}},
		{"another tag, though not newer", "13.1.3", 200, http.Header{"If-None-Match": {`"x"`}, "If-Modified-Since": {same}}},
		{"no tag, though not newer", "13.1.3", 200, http.Header{"If-None-Match": {""}, "If-Modified-Since": {same}}},

		{"not newer", "13.1.3", 304, http.Header{"If-Modified-Since": {same}}},
		{"newer", "13.1.3", 200, http.Header{"If-Modified-Since": {before}}},
		{"not newer, rfc850-date", "5.6.7", 304, http.Header{"If-Modified-Since": {"Friday, 02-Jan-26 03:04:05 GMT"}}},
		{"newer, rfc850-date", "5.6.7", 200, http.Header{"If-Modified-Since": {"Friday, 02-Jan-26 03:04:04 GMT"}}},
		{"not newer, asctime-date", "5.6.7", 304, http.Header{"If-Modified-Since": {"Fri Jan  2 03:04:05 2026"}}},
		{"newer, asctime-date", "5.6.7", 200, http.Header{"If-Modified-Since": {"Fri Jan  2 03:04:04 2026"}}},
		{"no date", "13.1.3", 200, http.Header{"If-Modified-Since": {"yesterday"}}},
		{"empty", "13.1.3", 200, http.Header{"If-Modified-Since": {""}}},
		{"twice", "13.1.3", 200, http.Header{"If-Modified-Since": {same, same}}},
		{"two in a line", "13.1.3", 200, http.Header{"If-Modified-Since": {same + ", " + same}}},

		{"match", "13.1.1", 200, http.Header{"If-Match": {tag}}},
		{"match of any", "13.1.1", 200, http.Header{"If-Match": {"*"}}},
		{"match in the second line", "5.3", 200, http.Header{"If-Match": {`"x"`, `"y",` + tag}}},
		{"no match", "13.1.1", 412, http.Header{"If-Match": {`"x"`}}},
		{"no match with a weak one", "13.1.1", 412, http.Header{"If-Match": {"W/" + tag}}},
		{"no match with nothing", "13.1.1", 412, http.Header{"If-Match": {""}}},
		{"unmodified", "13.1.4", 200, http.Header{"If-Unmodified-Since": {same}}},
		{"modified since", "13.1.4", 412, http.Header{"If-Unmodified-Since": {before}}},
		{"modified since, asctime-date", "13.1.4", 412, http.Header{"If-Unmodified-Since": {"Fri Jan  2 03:04:04 2026"}}},
		{"modified since no date", "13.1.4", 200, http.Header{"If-Unmodified-Since": {"yesterday"}}},
		{"modified since two dates", "13.1.4", 200, http.Header{"If-Unmodified-Since": {before, before}}},

		{"match, though modified", "13.2.2", 200, http.Header{"If-Match": {tag}, "If-Unmodified-Since": {before}}},
		{"no match, though unmodified", "13.2.2", 412, http.Header{"If-Match": {`"x"`}, "If-Unmodified-Since": {after}}},
		{"match, and the client has it", "13.2.2", 304, http.Header{"If-Match": {tag}, "If-None-Match": {tag}}},
		{"no match, though the client has it", "13.2.2", 412, http.Header{"If-Match": {`"x"`}, "If-None-Match": {tag}}},
		{"unmodified, and not newer", "13.2.2", 304, http.Header{"If-Unmodified-Since": {same}, "If-Modified-Since": {same}}},
		{"modified, though the client has it", "13.2.2", 412, http.Header{"If-Unmodified-Since": {before}, "If-None-Match": {tag}}},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			t.Run(method+" "+c.name, func(t *testing.T) {
				s := ask(a, method, "/static/", c.conditions)
				require.Equal(t, c.status, s.Status, "RFC 9110, %s", c.section)
				switch c.status {
				case 200:
					require.Equal(t, len("<p>home"), s.ContentLength())
				case 304:
					require.Empty(t, s.Body)
					require.Empty(t, s.ContentType)
				case 412:
					require.Equal(t, "412 Precondition Failed\n", string(s.Body))
					require.Empty(t, s.ETag+s.LastModified)
					return
				}
				require.Equal(t, first.ETag, s.ETag)
				require.Equal(t, first.LastModified, s.LastModified)
			})
		}
		// A condition does not count where the answer would be another one without it (RFC 9110,
		// 13.2.1).
		require.Equal(t, 404, ask(a, "GET", "/static/none", c.conditions).Status)
		require.Equal(t, 405, ask(a, "POST", "/static/", c.conditions).Status)
	}
}

func TestDates(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"Sun, 06 Nov 1994 08:49:37 GMT":     "1994-11-06T08:49:37Z",
		"Sunday, 06-Nov-94 08:49:37 GMT":    "1994-11-06T08:49:37Z",
		"Sun Nov  6 08:49:37 1994":          "1994-11-06T08:49:37Z",
		"Wed Nov 16 08:49:37 1994":          "1994-11-16T08:49:37Z",
		"Monday, 01-Jun-76 00:00:00 GMT":    "2076-06-01T00:00:00Z", // not more than 50 years from now
		"Wednesday, 01-Jul-76 00:00:00 GMT": "2076-07-01T00:00:00Z",
		"Thursday, 01-Jul-76 00:00:01 GMT":  "1976-07-01T00:00:01Z",
		"Friday, 01-Jan-77 00:00:00 GMT":    "1977-01-01T00:00:00Z",
		"Saturday, 01-Jan-00 00:00:00 GMT":  "2000-01-01T00:00:00Z",
		"Wednesday, 01-Jan-69 00:00:00 GMT": "2069-01-01T00:00:00Z",
		"Sat, 31 Dec 2016 23:59:60 GMT":     "2017-01-01T00:00:00Z",
		"Sat Dec 31 23:59:60 2016":          "2017-01-01T00:00:00Z",
		"Mon, 06 Nov 1994 08:49:37 GMT":     "1994-11-06T08:49:37Z", // the day's name is for people
		"":                                  "",
		"Sun, 06 Nov 1994 08:49:37":         "",
		"Sun, 06 Nov 1994 08:49:37 UTC":     "",
		"Sun, 06 Nov 1994 08:49:37 +0000":   "",
		"Sun, 06 Nov 1994 08:49:37.5 GMT":   "",
		"Sun, 6 Nov 1994 08:49:37 GMT":      "",
		"Sun, 06 Nov 1994 8:49:37 GMT":      "",
		"Sun, 06 NOV 1994 08:49:37 GMT":     "",
		"Sun, 06 Nov 94 08:49:37 GMT":       "",
		"Sun, 31 Nov 1994 08:49:37 GMT":     "",
		"Sun, 06 Nov 1994 24:00:00 GMT":     "",
		"Sun, 06 Nov 1994 08:49:61 GMT":     "",
		"Sun Nov 6 08:49:37 1994":           "",
		"Sun Nov 06 08:49:37 1994":          "",
		"784111777":                         "",
	} {
		got, ok := parseDate(text, now)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, got.Format(time.RFC3339), text)
		}
	}
}

func TestNothingIsModifiedInTheFuture(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "a"), "a", time.Now().Add(48*time.Hour))
	a := newStatic(t, folder)
	s := serve(a, "GET", "/static/a")
	modified, err := time.Parse(http.TimeFormat, s.LastModified)
	require.NoError(t, err)
	require.False(t, modified.After(time.Now()), "RFC 9110, 8.8.2.1")
	require.Equal(t, 304, ask(a, "GET", "/static/a", http.Header{"If-None-Match": {s.ETag}}).Status)
	yesterday := time.Now().Add(-24 * time.Hour).UTC().Format(http.TimeFormat)
	require.Equal(t, 200, ask(a, "GET", "/static/a", http.Header{"If-Modified-Since": {yesterday}}).Status)
}

// watchOpens counts how often files are opened, and calls before each time, between the look at the
// file and its opening.
func watchOpens(a *App, before func(name string)) *atomic.Int64 {
	var opens atomic.Int64
	open := a.static.memory.open
	a.static.memory.open = func(name string, flag int, perm fs.FileMode) (*os.File, error) {
		opens.Add(1)
		if before != nil {
			before(name)
		}
		return open(name, flag, perm)
	}
	return &opens
}

func TestAFileIsReadOnce(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	writeFile(t, path, "one", longAgo)
	a := newStatic(t, folder)
	opens := watchOpens(a, nil)

	head := serve(a, "HEAD", "/static/a.txt")
	require.Equal(t, 3, head.ContentLength())
	require.Equal(t, 304, ask(a, "GET", "/static/a.txt", http.Header{"If-None-Match": {head.ETag}}).Status)
	require.Equal(t, 412, ask(a, "GET", "/static/a.txt", http.Header{"If-Match": {`"x"`}}).Status)
	require.Zero(t, opens.Load(), "HEAD, 304 and 412 need no more than a look")
	first := serve(a, "GET", "/static/a.txt")
	require.Equal(t, "one", string(first.Body))
	require.True(t, first.Stable)
	require.Equal(t, len(first.Body), cap(first.Body), "an append must not write into it")
	again := serve(a, "GET", "/static/a.txt")
	require.Same(t, &first.Body[0], &again.Body[0])
	require.EqualValues(t, 1, opens.Load())

	// Each of these is another file: by its time, its size, or its inode.
	for i, change := range []func(){
		func() { writeFile(t, path, "two", longAgo.Add(1)) },
		func() { writeFile(t, path, "three", longAgo.Add(1)) },
		func() {
			writeFile(t, path+".new", "seven", longAgo.Add(1))
			require.NoError(t, os.Rename(path+".new", path))
		},
	} {
		change()
		want := []string{"two", "three", "seven"}[i]
		require.Equal(t, want, string(serve(a, "GET", "/static/a.txt").Body))
		require.Equal(t, want, string(serve(a, "GET", "/static/a.txt").Body))
		require.EqualValues(t, 2+i, opens.Load())
	}
	require.Equal(t, "one", string(first.Body), "an answer that is still being sent stays as it is")
	require.NoError(t, os.Remove(path))
	require.Equal(t, 404, serve(a, "GET", "/static/a.txt").Status)
}

// TestAFreshFileIsReadAgain changes a file without a trace, as within one tick of the kernel's
// clock.
func TestAFreshFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	a := newStatic(t, filepath.Dir(path))
	modified := time.Now()
	writeFile(t, path, "one", modified)
	serve(a, "GET", "/static/a.txt")
	writeFile(t, path, "two", modified)
	require.Eventually(t, func() bool { return string(serve(a, "GET", "/static/a.txt").Body) == "two" }, 20*time.Second, 5*time.Millisecond)
}

func TestManyLoopsReadAFileOnce(t *testing.T) {
	folder := t.TempDir()
	text := strings.Repeat("so it is ", 50_000)
	writeFile(t, filepath.Join(folder, "a.txt"), text, longAgo)
	a := newStatic(t, folder)
	const loops = 16
	begun := make(chan struct{}, loops)
	opens := watchOpens(a, func(string) {
		for range loops { // the file is not read before all have come
			<-begun
		}
	})
	var all sync.WaitGroup
	for range loops {
		all.Go(func() {
			begun <- struct{}{}
			if s := serve(a, "GET", "/static/a.txt"); string(s.Body) != text || !s.Stable {
				t.Errorf("status %d, %d bytes", s.Status, len(s.Body))
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, opens.Load())
}

func TestMemoryIsBounded(t *testing.T) {
	folder := t.TempDir()
	a := newApp(t, Options{Static: folder, StaticMemory: 10_000})
	opens := watchOpens(a, nil)
	get := func(i int) string {
		s := serve(a, "GET", fmt.Sprint("/static/", i))
		require.Equal(t, 200, s.Status)
		require.LessOrEqual(t, a.static.memory.held, int64(10_000))
		require.Equal(t, a.static.memory.order.Len(), len(a.static.memory.files))
		return string(s.Body)
	}
	text := func(i int) string { return strings.Repeat(string(rune('a'+i)), 3000) }
	for i := range 5 {
		writeFile(t, filepath.Join(folder, fmt.Sprint(i)), text(i), longAgo)
	}
	for _, step := range []struct {
		file  int
		opens int64
	}{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {3, 4}, {0, 4}, {1, 5}, {2, 6}, {0, 6}, {4, 7}, {0, 7}} {
		require.Equal(t, text(step.file), get(step.file))
		require.Equal(t, step.opens, opens.Load(), "the file that was not asked for the longest has to go")
	}
	for i := 100; i < 200; i++ {
		writeFile(t, filepath.Join(folder, fmt.Sprint(i)), "", longAgo)
		require.Empty(t, get(i))
	}
	require.LessOrEqual(t, len(a.static.memory.files), 10_000/leastHeld, "the small ones and the empty ones count, too")

	writeFile(t, filepath.Join(folder, "200"), strings.Repeat("x", 10_000), longAgo)
	require.Len(t, get(200), 10_000)
	require.Len(t, a.static.memory.files, 1)
}

func TestALargerFileIsAClearAnswer(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "large.txt"), strings.Repeat("x", 1001), longAgo)
	a := newApp(t, Options{Static: folder, StaticMemory: 1000})
	opens := watchOpens(a, nil)
	for _, method := range []string{"GET", "HEAD"} {
		for _, conditions := range []http.Header{nil, {"If-None-Match": {"*"}}, {"If-Match": {`"x"`}}} {
			s := ask(a, method, "/static/large.txt", conditions)
			require.Equal(t, 500, s.Status)
			require.Equal(t, http1.TextPlain, s.ContentType)
			require.Contains(t, string(s.Body), "-static-memory 1001")
			require.True(t, s.Stable)
			require.Empty(t, s.ETag+s.LastModified)
		}
	}
	require.Zero(t, opens.Load())
}

// TestAFileThatChangesUnderOurHands changes it between the look and the reading.
func TestAFileThatChangesUnderOurHands(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, path string)
		want   string
	}{
		{"shorter", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 2)) }, "ab"},
		{"longer", func(t *testing.T, path string) { writeFile(t, path, "abcdefgh", longAgo) }, "abcdefgh"},
		{"later", func(t *testing.T, path string) { writeFile(t, path, "ABCD", longAgo.Add(1)) }, "ABCD"},
		{"another", func(t *testing.T, path string) {
			writeFile(t, path+".new", "EFGH", longAgo)
			require.NoError(t, os.Rename(path+".new", path))
		}, "EFGH"},
		{"gone", func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, ""},
		{"a folder", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o777))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.txt")
			writeFile(t, path, "abcd", longAgo)
			a := newStatic(t, filepath.Dir(path))
			var once sync.Once
			opens := watchOpens(a, func(string) { once.Do(func() { c.change(t, path) }) })
			s := serve(a, "GET", "/static/a.txt")
			if c.want == "" {
				require.Equal(t, 404, s.Status)
				return
			}
			require.Equal(t, 200, s.Status)
			require.Equal(t, c.want, string(s.Body))
			require.EqualValues(t, 2, opens.Load())
			require.Equal(t, serve(a, "HEAD", "/static/a.txt").ETag, s.ETag)
		})
	}

	t.Run("again and again", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.txt")
		writeFile(t, path, "abcd", longAgo)
		a := newStatic(t, filepath.Dir(path))
		change := longAgo
		opens := watchOpens(a, func(string) {
			change = change.Add(time.Second)
			writeFile(t, path, "abcd", change)
		})
		s := serve(a, "GET", "/static/a.txt")
		require.Equal(t, 500, s.Status)
		require.Equal(t, "500 Internal Server Error\n", string(s.Body))
		require.Empty(t, s.ETag+s.LastModified)
		require.EqualValues(t, 2, opens.Load())
		require.Empty(t, a.static.memory.files)
		require.Zero(t, a.static.memory.held)
	})
}

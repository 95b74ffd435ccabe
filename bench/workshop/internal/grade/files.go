package grade

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("file-answers", "all below /static/ is answered as by the stage, byte for byte", fileAnswers)
	behaviour("one-segment", "the head and the file's first block come in one segment", oneSegment)
	behaviour("not-held-back", "nothing waits behind MSG_MORE that nothing follows", notHeldBack)
	behaviour("late-files", "a client that reads late gets every byte of its files, in order", lateFiles)
	behaviour("patient-files", "a file for a client that does not read costs nothing meanwhile", patientFiles)
	behaviour("descriptors", "each file is closed, and once", descriptors)
	behaviour("file-changes", "a file that changes under way breaks its own answer at most", fileChanges)
}

// largeFile is more than a client's and a server's buffers hold together.
const largeFile = 16 << 20

var largeText = sync.OnceValue(func() string { return fileText(largeFile) })

// unhurried keeps the server from ending a transfer that a client lets wait: the grader sees then what it does by itself.
const unhurried = "-write-timeout=60s"

// withFiles starts a server with one worker and these files, runs f, and wants the server to stop well.
func (s *Subject) withFiles(files map[string]string, f func(server *Server, folder string) error, flags ...string) error {
	folder, err := filesIn(files)
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	return s.with(func(server *Server) error { return f(server, folder) }, append(flags, "-static", folder)...)
}

// fileAnswers asks the subject and the stage that it builds on the same, and compares all but the date.
func fileAnswers(s *Subject) error {
	base, err := s.BuildBase()
	if err != nil {
		return err
	}
	files := map[string]string{
		"index.html": "<p>home", "a.css": "p{}", "sub/index.html": "<p>sub", "sub/b.PNG": fileText(70_000),
		"empty.txt": "", "two words": "words", ".hidden": "no", "one": "1", "large.bin": fileText(1_500_000),
	}
	folder, err := filesIn(files)
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := os.Symlink("/etc/hostname", filepath.Join(folder, "out")); err != nil {
		return err
	}
	if err := os.Symlink("a.css", filepath.Join(folder, "in.css")); err != nil {
		return err
	}
	var requests []string
	for _, path := range []string{"", "index.html", "a.css", "sub/", "sub", "sub/b.PNG", "empty.txt", "two%20words", ".hidden", "one", "large.bin",
		"out", "in.css", "none", "../static/a.css", "a.css/", "/a.css", "a.css?x=1", "%2e%2e/a.css"} {
		for _, method := range []string{"GET", "HEAD"} {
			requests = append(requests, method+" /static/"+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		}
	}
	conditional := func(path, field string) {
		for _, method := range []string{"GET", "HEAD"} {
			requests = append(requests, method+" /static/"+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+field+"\r\n\r\n")
		}
	}
	future := time.Now().Add(48 * time.Hour).UTC().Format(http.TimeFormat)
	for _, field := range []string{"If-None-Match: *", `If-None-Match: "other"`, "If-Modified-Since: " + future,
		"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", `If-None-Match: "other"` + "\r\nIf-Modified-Since: " + future} {
		conditional("sub/b.PNG", field)
		conditional("empty.txt", field)
	}
	requests = append(requests,
		"POST /static/a.css HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
		"GET /static/a.css HTTP/1.0\r\n\r\n")
	// A file between other answers, in one piece.
	requests = append(requests, strings.Join([]string{helloRequest, "GET /static/a.css HTTP/1.1\r\nHost: a\r\n\r\n", echoRequest("text/plain", strings.Repeat("so it is ", 200)),
		"GET /static/large.bin HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD /static/large.bin HTTP/1.1\r\nHost: a\r\n\r\n", "GET /static/empty.txt HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /bytes/30000 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /static/sub/b.PNG HTTP/1.1\r\nHost: a\r\n\r\n", "GET /users/7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"}, ""))

	var answers [2][]string
	for i, binary := range []string{base, s.Binary} {
		server, err := s.start(binary, nil, nil, []string{"-workers", "1", "-static", folder})
		err = lend(server, err, func(server *Server) error {
			for _, request := range requests {
				text, err := server.conversation(request)
				if err != nil && i == 1 {
					return fmt.Errorf("%s: %w", firstLine(request), err)
				} else if err != nil {
					return err
				}
				answers[i] = append(answers[i], text)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, request := range requests {
		want, got := answers[0][i], answers[1][i]
		if got == want {
			continue
		}
		at := firstDifference(got, want)
		return fmt.Errorf("%s: from byte %d on it is %s, not %s", firstLine(request), at, clip([]byte(got[at:])), clip([]byte(want[at:])))
	}
	return nil
}

func firstLine(request string) string {
	line, _, _ := strings.Cut(request, " HTTP")
	return line
}

func fileRequest(name string) string { return "GET /static/" + name + " HTTP/1.1\r\nHost: a\r\n\r\n" }

// oneSegment counts the segments that come for answers that fit one: the client's kernel knows.
func oneSegment(s *Subject) error {
	files := map[string]string{"1": "x", "600": fileText(600), "9000": fileText(9000), "20000": fileText(20_000)}
	return s.withFiles(files, func(server *Server, _ string) error {
		c, err := server.dial()
		if err != nil {
			return err
		}
		for _, name := range []string{"1", "600", "9000", "20000"} {
			before, err := c.segmentsIn()
			if err != nil {
				return err
			}
			const n = 50
			for range n {
				if err := c.send(fileRequest(name)); err != nil {
					return err
				}
				if err := c.expect(200, files[name]); err != nil {
					return err
				}
			}
			after, err := c.segmentsIn()
			if err != nil {
				return err
			}
			// A machine that stops for a fifth of a second between two calls makes two of one.
			if came := after - before; came > n+n/10 {
				return fmt.Errorf("%d answers with %s bytes came in %d segments", n, name, came)
			}
		}
		return nil
	})
}

// notHeldBack watches whether the server waits for events while it holds back what it has sent with MSG_MORE.
func notHeldBack(s *Subject) error {
	if s.Blind() != nil {
		return nil // said once already
	}
	return s.watchFiles(func(server *Server, name string) error {
		if n := server.record.snapshot()[heldBack]; n > 0 {
			return fmt.Errorf("after %s the server waits, with MSG_MORE as its last word: the client gets the answer a fifth of a second later", name)
		}
		return nil
	})
}

// watchFiles sends requests of all kinds to a server under watch, and has each looked at by check.
func (s *Subject) watchFiles(check func(server *Server, request string) error) error {
	folder, err := filesIn(map[string]string{"empty.txt": "", "one": "1", "a.bin": fileText(100_000)})
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	return s.withWatched(func(server *Server) error {
		for _, request := range []string{
			"GET /static/a.bin HTTP/1.1\r\nHost: a\r\n\r\n", "GET /static/one HTTP/1.1\r\nHost: a\r\n\r\n",
			"HEAD /static/a.bin HTTP/1.1\r\nHost: a\r\n\r\n", "GET /static/empty.txt HTTP/1.1\r\nHost: a\r\n\r\n",
			"GET /static/a.bin HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n", "GET /static/none HTTP/1.1\r\nHost: a\r\n\r\n",
			"GET /static/a.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HEAD /static/a.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET /static/empty.txt HTTP/1.0\r\n\r\n",
		} {
			c, err := server.dial()
			if err != nil {
				return err
			}
			what := firstLine(request)
			method, _, _ := strings.Cut(request, " ")
			for range 3 {
				if err := c.send(request); err != nil {
					return err
				}
				c.TCP.SetReadDeadline(time.Now().Add(answerLimit))
				response, err := http.ReadResponse(c.Reader, &http.Request{Method: method})
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", what, plain(err))
				}
				if response.Close {
					break
				}
			}
			// Another client's answer comes after the turn that this one's answer was made in.
			if err := server.helloOver(1); err != nil {
				return err
			}
			if err := check(server, what); err != nil {
				return err
			}
		}
		return nil
	}, "-static", folder)
}

// lateFiles begins to read when the server has found the socket full.
func lateFiles(s *Subject) error {
	large, small := largeText(), fileText(5000)
	return s.withFiles(map[string]string{"large": large, "small": small}, func(server *Server, _ string) error {
		requests := fileRequest("small") + helloRequest + fileRequest("large") + helloRequest + fileRequest("empty") +
			fileRequest("small") + echoRequest("text/plain", "behind it") + fileRequest("large") + fileRequest("small") + helloRequest
		c, err := dialSlow(server.Ready.Address)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.send(requests); err != nil {
			return err
		}
		if err := server.full(); err != nil {
			return err
		}
		for i, want := range []struct {
			status int
			body   string
		}{{200, small}, {200, greeting}, {200, large}, {200, greeting}, {404, "404 Not Found\n"}, {200, small}, {200, "behind it"},
			{200, large}, {200, small}, {200, greeting}} {
			if err := c.expect(want.status, want.body); err != nil {
				return fmt.Errorf("answer %d: %w", i+1, err)
			}
		}
		return nil
	}, unhurried)
}

func patientFiles(s *Subject) error {
	return s.withFiles(map[string]string{"large": largeText()}, func(server *Server, _ string) error {
		return server.patientWith(fileRequest("large"), largeFile)
	})
}

// openFiles counts the descriptors of a server that lead below a folder.
func openFiles(pid int, folder string) (below int, err error) {
	folder, err = filepath.EvalSymlinks(folder)
	if err != nil {
		return 0, err
	}
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return 0, err
	}
	for _, descriptor := range descriptors {
		if link, err := os.Readlink(descriptor); err == nil && strings.HasPrefix(link, folder+string(filepath.Separator)) {
			below++
		}
	}
	return below, nil
}

// allClosed waits until no file below the folder is open any more.
func (s *Server) allClosed(folder, after string) error {
	open := 0
	_, ok := s.await(func(harness.Reading) bool {
		var err error
		open, err = openFiles(s.PID(), folder)
		return err == nil && open == 0
	})
	if !ok {
		return fmt.Errorf("after %s it still has files open, %d of them", after, open)
	}
	return nil
}

// descriptors looks after each way in which an answer can end whether its file is closed; and whether any is closed twice.
func descriptors(s *Subject) error {
	files := map[string]string{"large": largeText(), "small": fileText(5000), "empty": ""}
	err := s.withFiles(files, func(server *Server, folder string) error {
		for _, request := range []string{
			fileRequest("small"), "HEAD /static/small HTTP/1.1\r\nHost: a\r\n\r\n", fileRequest("empty"), fileRequest("large"),
			"GET /static/small HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n", "GET /static/large HTTP/1.0\r\n\r\n", "HEAD /static/large HTTP/1.0\r\n\r\n",
		} {
			last := "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
			if strings.Contains(request, "HTTP/1.0") {
				last = ""
			}
			if _, err := server.conversation(request + last); err != nil {
				return fmt.Errorf("%s: %w", firstLine(request), err)
			}
			if err := server.allClosed(folder, firstLine(request)); err != nil {
				return err
			}
		}
		// Clients that go away in the middle, with requests behind it; and one that comes to the same by not reading.
		for _, end := range []string{"a reset connection", "a client that takes nothing more"} {
			var stalled []*connection
			defer func() { closeAll(stalled) }()
			for range 5 {
				c, err := dialSlow(server.Ready.Address)
				if err != nil {
					return err
				}
				stalled = append(stalled, c)
				if err := c.send(fileRequest("large"), fileRequest("small"), fileRequest("large")); err != nil {
					return err
				}
			}
			if err := server.full(); err != nil {
				return err
			}
			if strings.HasPrefix(end, "a reset") {
				for _, c := range stalled {
					c.TCP.SetLinger(0)
				}
				closeAll(stalled)
				stalled = nil
			}
			if err := server.allClosed(folder, end); err != nil {
				return err
			}
		}
		return server.helloOver(1)
	}, "-write-timeout=1s")
	if err != nil || s.Blind() != nil {
		return err
	}
	return s.watchFiles(func(server *Server, request string) error {
		if server.record.snapshot()[closedAgain] > 0 {
			return fmt.Errorf("%s closes a descriptor that is closed already: the next time it may be another's", request)
		}
		return nil
	})
}

// fileChanges changes a file while it is being sent to a client that does not read.
func fileChanges(s *Subject) error {
	large := largeText()
	for _, change := range []struct {
		what string
		size int64
	}{{"has grown", largeFile + 4096}, {"has become shorter", 100}, {"is empty now", 0}} {
		err := s.withFiles(map[string]string{"large": large}, func(server *Server, folder string) error {
			c, err := dialSlow(server.Ready.Address)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.send(fileRequest("large"), helloRequest); err != nil {
				return err
			}
			if err := server.full(); err != nil {
				return err
			}
			if err := os.Truncate(filepath.Join(folder, "large"), change.size); err != nil {
				return err
			}
			if err = c.expect(200, large); err == nil {
				err = c.expect(200, greeting)
			}
			// What a head has promised of a file that is gone cannot be kept, and the client has to see it.
			if err != nil && (change.size > largeFile || !errors.Is(err, errEnded) && !errors.Is(err, errReset)) {
				return err
			}
			if err := server.helloOver(1); err != nil {
				return fmt.Errorf("another client: %w", err)
			}
			return server.allClosed(folder, "its end")
		}, unhurried)
		if err != nil {
			return fmt.Errorf("a file that %s: %w", change.what, err)
		}
	}
	return nil
}

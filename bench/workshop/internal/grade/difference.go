package grade

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

func init() {
	behaviour("no-library", "wildcat is gone", noLibrary)
	behaviour("same-answers", "two thousand random heads get the same answers as from the stage it is based on", sameAnswers)
}

func noLibrary(s *Subject) error {
	for name, text := range s.Own {
		if strings.HasSuffix(name, ".go") && bytes.Contains(text, []byte(`"github.com/evanphx/wildcat"`)) {
			return fmt.Errorf("%s imports it", name)
		}
	}
	return nil
}

// sameAnswers sends the same random heads, valid for the most part, to the subject and to its base.
func sameAnswers(s *Subject) error {
	base, err := s.BuildBase()
	if err != nil {
		return err
	}
	var servers [2]*Server
	for i, binary := range []string{base, s.Binary} {
		if servers[i], err = s.start(binary, nil, nil, []string{"-workers", "1"}); err != nil {
			return err
		}
		defer servers[i].Kill()
	}
	const rounds, together = 100, 20
	random := s.random("same answers")
	for round := range rounds {
		var all strings.Builder
		for range together {
			all.WriteString(randomHead(random))
		}
		var got [2]string
		for i, server := range servers {
			if got[i], err = server.conversation(all.String()); err != nil {
				return err
			}
		}
		if got[0] != got[1] {
			at := firstDifference(got[0], got[1])
			return fmt.Errorf("round %d of %d, from byte %d on: %s, not %s", round+1, rounds, at, clip([]byte(got[1][at:])), clip([]byte(got[0][at:])))
		}
	}
	return servers[1].Stop()
}

// firstDifference is where one of two texts that differ ends, or goes on in another way.
func firstDifference(a, b string) (at int) {
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return at
}

// conversation sends text and the end of input, and reads all that comes back, the dates left out.
func (s *Server) conversation(text string) (string, error) {
	c, err := dial(s.Ready.Address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	go func() {
		if c.send(text) == nil {
			c.CloseWrite()
		}
	}()
	c.TCP.SetReadDeadline(time.Now().Add(answerLimit))
	answers, err := io.ReadAll(c.Reader)
	if err != nil {
		return "", errors.New("after " + clip(answers) + ": " + plain(err).Error())
	}
	var out strings.Builder
	for line := range strings.Lines(string(answers)) {
		if !strings.HasPrefix(line, "Date: ") {
			out.WriteString(line)
		}
	}
	return out.String(), nil
}

// randomHead is an upload whose fields come in any number, order, letters and spacing; now and then something
// is wrong with it.
func randomHead(random *rand.Rand) string {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	lines := []string{"Host:" + pick(" a", "a", "\ta \t", " b.example:80"), "Content-Length: 2"}
	for range random.IntN(12) {
		name := pick("X-One", "Accept", "x", "Content-Typ", "Content-Types", "Content_Type", "User-Agent", "Cookie", "!#$%&'*+-.^_`|~")
		lines = append(lines, name+":"+pick("", " ", " 1", "v", " a: b", " \"quoted\" ", " caf\xe9", " Content-Type: x/y", "\t\t", " ,;=")+pick("", " ", "\t"))
	}
	for range random.IntN(3) {
		name := pick("Content-Type", "content-type", "CONTENT-TYPE", "cOnTeNt-TyPe")
		lines = append(lines, name+":"+pick("", " ", "\t")+pick("text/plain", "a/b", "", "x", "a/b; c=\"d e\"", strings.Repeat("long/", 60))+pick("", " ", " \t "))
	}
	if random.IntN(12) == 0 {
		lines = append(lines, strings.Split(strings.Repeat("X-Filler: yes\n", 64-len(lines)-random.IntN(2)), "\n")...)
		lines = lines[:len(lines)-1]
	}
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	if random.IntN(200) == 0 {
		lines = append(lines, pick(" folded", "no colon", "Blank : before", "Control: \x01"))
	}
	target := pick("/api/echo", "/api/echo?q=1", "http://other.example/api/echo", "/api/%65cho", "/users/a%20b?x")
	return "POST " + target + " HTTP/1.1\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\nok"
}

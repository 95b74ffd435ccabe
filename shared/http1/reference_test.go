package http1

import (
	"bytes"
	"fmt"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// The grammar once more, as regular expressions over whole inputs: slow, and made from the RFCs without a
// look at the scanners, so that a mistake would have to be made twice. In a Go expression a byte that is
// no UTF-8 matches a negated class, which is what obs-text needs.
const (
	tokenExpression    = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
	valueExpression    = `[^\x00-\x08\x0a-\x1f\x7f]*`
	quotedExpression   = `"(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f])*"`
	linesExpression    = `(?:` + tokenExpression + `:` + valueExpression + `\r\n)*`
	blanksExpression   = `[ \t]*`
	wordExpression     = `(?:` + tokenExpression + `|` + quotedExpression + `)`
	escapeExpression   = `%[0-9A-Fa-f]{2}`
	nameExpression     = `(?:[A-Za-z0-9\-._~!$&'()*+,;=]|` + escapeExpression + `)`
	pcharExpression    = `(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|` + escapeExpression + `)`
	pathExpression     = `(?:/` + pcharExpression + `*)`
	queryExpression    = `(?:\?(?:` + pcharExpression + `|[/?])*)?`
	hostPortExpression = `(\[[^\]]*\]|` + nameExpression + `*)(?::([0-9]*))?`
)

var (
	headPattern = regexp.MustCompile(`^(\r\n)?(` + tokenExpression + `) ([^ ]+) HTTP/([0-9])\.([0-9])\r\n(` + linesExpression + `)\r\n`)
	linePattern = regexp.MustCompile(`(` + tokenExpression + `):(` + valueExpression + `)\r\n`)

	originPattern    = regexp.MustCompile(`^` + pathExpression + `+` + queryExpression + `$`)
	absolutePattern  = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+\-.]*)://([^/?]*)` + pathExpression + `*` + queryExpression + `$`)
	userInfoPattern  = regexp.MustCompile(`^(?:` + nameExpression + `|:)*$`)
	hostPortPattern  = regexp.MustCompile(`^` + hostPortExpression + `$`)
	futureIPPattern  = regexp.MustCompile(`^[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+$`)
	codingExpression = `(` + tokenExpression + `)((?:` + blanksExpression + `;` + blanksExpression + tokenExpression +
		blanksExpression + `=` + blanksExpression + wordExpression + `)*)`
	codingPattern = regexp.MustCompile(`^[ \t,]*` + codingExpression + blanksExpression + `(?:,|$)`)

	chunkLinePattern = regexp.MustCompile(`^([0-9A-Fa-f]+)(?:` + blanksExpression + `;` + blanksExpression + tokenExpression +
		`(?:` + blanksExpression + `=` + blanksExpression + wordExpression + `)?)*\r\n`)
	trailersPattern = regexp.MustCompile(`^` + linesExpression + `\r\n`)
)

// referenceHostPort reports whether s is uri-host [ ":" port ].
func referenceHostPort(s string) (host, port string, ok bool) {
	m := hostPortPattern.FindStringSubmatch(s)
	if m == nil {
		return "", "", false
	}
	host, port = m[1], m[2]
	if digits := strings.TrimLeft(port, "0"); len(digits) > 5 || len(digits) == 5 && digits > "65535" {
		return "", "", false
	}
	if inside, found := strings.CutPrefix(host, "["); found {
		inside = strings.TrimSuffix(inside, "]")
		address, err := netip.ParseAddr(inside)
		ok = err == nil && address.Is6() && address.Zone() == "" || futureIPPattern.MatchString(inside)
		return host, port, ok
	}
	return host, port, true
}

// referenceTarget reports whether a target is one that may come with the method.
func referenceTarget(method, target string) bool {
	if method == "CONNECT" {
		host, port, ok := referenceHostPort(target)
		return ok && host != "" && port != ""
	}
	if target == "*" {
		return method == "OPTIONS"
	}
	if originPattern.MatchString(target) {
		return true
	}
	m := absolutePattern.FindStringSubmatch(target)
	if m == nil {
		return false
	}
	scheme, authority := strings.ToLower(m[1]), m[2]
	web := scheme == "http" || scheme == "https"
	userInfo, hostPort, found := strings.Cut(authority, "@")
	if !found {
		userInfo, hostPort = "", authority
	}
	host, _, ok := referenceHostPort(hostPort)
	return ok && userInfoPattern.MatchString(userInfo) && (!web || !found && host != "")
}

// referenceHead judges a whole head that is well formed and within the limits: its length and the status
// of its fault. The length is 0 if there is no such head at the start of the input.
func referenceHead(in []byte, maxBody int64) (length, status int) {
	m := headPattern.FindSubmatch(in)
	if m == nil {
		return 0, 0
	}
	method, target := string(m[2]), string(m[3])
	lines := linePattern.FindAllSubmatch(m[6], -1)
	if len(m[0])-len(m[1]) > MaxHead || len(lines) > MaxHeaders || len(target) > MaxTarget || !referenceTarget(method, target) {
		return 0, 0
	}
	return len(m[0]), referenceMeaning(method, string(m[4]), string(m[5]), lines, maxBody)
}

// referenceMeaning gives the status of the fault of a well-formed head, 0 if it has none.
func referenceMeaning(method, major, minor string, lines [][][]byte, maxBody int64) int {
	values := map[string][]string{}
	for _, line := range lines {
		name := strings.ToLower(string(line[1]))
		values[name] = append(values[name], strings.Trim(string(line[2]), " \t"))
	}
	if major != "1" {
		return 505
	}
	hosts := values["host"]
	if len(hosts) > 1 || len(hosts) == 0 && minor != "0" {
		return 400
	}
	if len(hosts) == 1 {
		if _, _, ok := referenceHostPort(hosts[0]); !ok {
			return 400
		}
	}
	size := new(big.Int)
	lengths, encodings := values["content-length"], values["transfer-encoding"]
	for _, text := range lengths {
		if text != lengths[0] || text == "" || strings.Trim(text, "0123456789") != "" {
			return 400
		}
		size.SetString(text, 10)
	}
	if !size.IsInt64() {
		return 400
	}
	if len(encodings) > 0 && (len(lengths) > 0 || minor == "0") {
		return 400
	}
	chunked, other := false, false
	for _, text := range encodings {
		if strings.Trim(text, " \t,") == "" {
			return 400
		}
		for strings.Trim(text, " \t,") != "" {
			m := codingPattern.FindStringSubmatch(text)
			if m == nil || chunked {
				return 400
			}
			text = text[len(m[0]):]
			if strings.EqualFold(m[1], "chunked") {
				if m[2] != "" {
					return 400
				}
				chunked = true
			} else {
				other = true
			}
		}
	}
	if other {
		return 501
	}
	for member := range strings.SplitSeq(strings.Join(values["expect"], ","), ",") {
		if member = strings.Trim(member, " \t"); minor != "0" && member != "" && !equalASCII(member, "100-continue") {
			return 417
		}
	}
	if size.Cmp(big.NewInt(maxBody)) > 0 {
		return 413
	}
	if method == "CONNECT" {
		return 405
	}
	return 0
}

// equalASCII compares in any case, but of ASCII only.
func equalASCII(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }

// referenceCompletable reports whether something may follow the input so that a well-formed head is there.
func referenceCompletable(in []byte) bool {
	for _, ending := range referenceEndings(in) {
		whole := fmt.Appendf(nil, "%s%s", in, ending)
		if m := headPattern.FindSubmatch(whole); m != nil && len(m[0]) >= len(in) && referenceTarget(string(m[2]), string(m[3])) {
			return true
		}
	}
	return false
}

// referenceEndings are endings of which one completes the input, if it can be completed at all.
func referenceEndings(in []byte) (endings []string) {
	const end = "\r\n\r\n"
	line := bytes.TrimPrefix(in, []byte("\r\n"))
	if bytes.Contains(line, []byte("\r\n")) {
		return []string{"", "\n", "\n" + end[2:], end, "\n" + end, ":" + end, "a:" + end}
	}
	const version = " HTTP/1.1" + end
	switch bytes.Count(line, []byte(" ")) {
	case 0:
		return []string{"G / HTTP/1.1" + end, " / HTTP/1.1" + end, " * HTTP/1.1" + end, " a:1 HTTP/1.1" + end, "\nG / HTTP/1.1" + end}
	case 1:
		for _, target := range []string{"", "/", "*", "0", "00", "a:1", ":1", "1", "00:1", "0:1", "://a", "//a", "/a", "a", "@a", "0@a", "00@a"} {
			endings = append(endings, target+version)
		}
		if n := bytes.LastIndexByte(in, '['); n >= 0 && !bytes.Contains(in[n:], []byte("]")) {
			for _, ending := range slices.Concat(ipv6Endings, []string{"1.a", ".a", "a"}) {
				endings = append(endings, ending+"]"+version, ending+"]:1"+version)
			}
		}
		return endings
	}
	for n := 1; n < len(version); n++ {
		endings = append(endings, version[n:], ".1"+end, "1"+end)
	}
	return endings
}

// referenceChunks decodes a whole chunked body at the start of the input; used is 0 if there is none
// that is valid.
func referenceChunks(in []byte, maxBody int64) (body string, used int) {
	at := 0
	for {
		m := chunkLinePattern.FindSubmatch(in[at:])
		if m == nil || len(m[0])-2 > MaxChunkLine {
			return "", 0
		}
		at += len(m[0])
		size, _ := new(big.Int).SetString(string(m[1]), 16)
		if size.Cmp(big.NewInt(maxBody-int64(len(body)))) > 0 {
			return "", 0
		}
		n := int(size.Int64())
		if n == 0 {
			break
		}
		if len(in)-at < n+2 || string(in[at+n:at+n+2]) != "\r\n" {
			return "", 0
		}
		body += string(in[at : at+n])
		at += n + 2
	}
	trailers := trailersPattern.Find(in[at:])
	if trailers == nil || len(trailers) > MaxTrailers {
		return "", 0
	}
	return body, at + len(trailers)
}

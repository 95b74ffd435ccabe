package app

import (
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// dateFormats are the forms of a date in HTTP, for a time in UTC (RFC 9110, 5.6.7): the one that is
// sent, and the two old ones, rfc850-date and asctime-date, that are understood as well.
var dateFormats = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	"Mon Jan _2 15:04:05 2006",
}

// precondition evaluates the conditions of q, a GET or a HEAD, for a file that is there, in the
// order of RFC 9110, 13.2.2. It answers 200, if the file is to be sent; 304; or 412.
func precondition(q *http1.Request, etag string, modified time.Time) int {
	if tags := q.Values("If-Match"); len(tags) > 0 {
		if !listed(tags, etag, false) {
			return 412
		}
	} else if since, ok := date(q, "If-Unmodified-Since"); ok && modified.After(since) {
		return 412
	}
	if tags := q.Values("If-None-Match"); len(tags) > 0 {
		if listed(tags, etag, true) {
			return 304
		}
	} else if since, ok := date(q, "If-Modified-Since"); ok && !modified.After(since) {
		return 304
	}
	return 200
}

// listed says whether the lines of a field are "*" or have etag, a strong one, in their list (RFC
// 9110, 13.1.1 and 13.1.2). weak says that W/ before a tag makes no difference (RFC 9110, 8.8.3.2).
// A line counts as far as it is well-formed.
func listed(lines []string, etag string, weak bool) bool {
	if len(lines) == 1 && lines[0] == "*" {
		return true
	}
	for _, line := range lines {
		for {
			line = strings.TrimLeft(line, " \t,")
			tag, isWeak := strings.CutPrefix(line, "W/")
			if tag == "" || tag[0] != '"' {
				break
			}
			// A tag may hold commas, but no quotes and no blanks (RFC 9110, 8.8.3).
			end := strings.IndexAny(tag[1:], "\" \t") + 2
			if end < 2 || tag[end-1] != '"' {
				break
			}
			line = strings.TrimLeft(tag[end:], " \t")
			if line != "" && line[0] != ',' {
				break
			}
			if tag[:end] == etag && (weak || !isWeak) {
				return true
			}
		}
	}
	return false
}

// date reads a field that is one date. What is not, or comes in more than one line, does not count
// (RFC 9110, 13.1.3 and 13.1.4).
func date(q *http1.Request, name string) (time.Time, bool) {
	lines := q.Values(name)
	if len(lines) != 1 {
		return time.Time{}, false
	}
	return parseDate(lines[0], time.Now())
}

// parseDate reads a date in any of its three forms (RFC 9110, 5.6.7).
func parseDate(text string, now time.Time) (time.Time, bool) {
	// time.Parse knows no leap second.
	text, leap := strings.Replace(text, ":60 ", ":59 ", 1), strings.Contains(text, ":60 ")
	for i, format := range dateFormats {
		t, err := time.Parse(format, text)
		// It is more generous than the grammar, but for the day's name: that is for people.
		if err != nil || behindDay(t.Format(format)) != behindDay(text) {
			continue
		}
		if i == 1 {
			t = nearCentury(t, now)
		}
		if leap {
			t = t.Add(time.Second)
		}
		return t, true
	}
	return time.Time{}, false
}

func behindDay(text string) string {
	_, rest, _ := strings.Cut(text, " ")
	return rest
}

// nearCentury moves a time whose century is not known to the last one in which it is no more than
// 50 years after now (RFC 9110, 5.6.7).
func nearCentury(t, now time.Time) time.Time {
	limit := now.AddDate(50, 0, 0)
	for !t.AddDate(100, 0, 0).After(limit) {
		t = t.AddDate(100, 0, 0)
	}
	for t.After(limit) {
		t = t.AddDate(-100, 0, 0)
	}
	return t
}

package http1

import "strconv"

// statusText has the reason phrases of RFC 9110, 15 and of RFC 6585 (428, 429, 431, 511).
var statusText = [600]string{
	100: "Continue",
	101: "Switching Protocols",
	200: "OK",
	201: "Created",
	202: "Accepted",
	203: "Non-Authoritative Information",
	204: "No Content",
	205: "Reset Content",
	206: "Partial Content",
	300: "Multiple Choices",
	301: "Moved Permanently",
	302: "Found",
	303: "See Other",
	304: "Not Modified",
	305: "Use Proxy",
	307: "Temporary Redirect",
	308: "Permanent Redirect",
	400: "Bad Request",
	401: "Unauthorized",
	402: "Payment Required",
	403: "Forbidden",
	404: "Not Found",
	405: "Method Not Allowed",
	406: "Not Acceptable",
	407: "Proxy Authentication Required",
	408: "Request Timeout",
	409: "Conflict",
	410: "Gone",
	411: "Length Required",
	412: "Precondition Failed",
	413: "Content Too Large",
	414: "URI Too Long",
	415: "Unsupported Media Type",
	416: "Range Not Satisfiable",
	417: "Expectation Failed",
	421: "Misdirected Request",
	422: "Unprocessable Content",
	426: "Upgrade Required",
	428: "Precondition Required",
	429: "Too Many Requests",
	431: "Request Header Fields Too Large",
	500: "Internal Server Error",
	501: "Not Implemented",
	502: "Bad Gateway",
	503: "Service Unavailable",
	504: "Gateway Timeout",
	505: "HTTP Version Not Supported",
	511: "Network Authentication Required",
}

// errorBodies has the body of Response.Error for each status that has a phrase.
var errorBodies = func() (bodies [600][]byte) {
	for code, text := range statusText {
		if text != "" {
			bodies[code] = []byte(strconv.Itoa(code) + " " + text + "\n")
		}
	}
	return bodies
}()

// StatusText is the reason phrase of a status code, "Not Found" for 404; "" if it has none.
func StatusText(code int) string {
	if code < 0 || code >= len(statusText) {
		return ""
	}
	return statusText[code]
}

// errorBody is the constant body of a status; one without a phrase is named by its number alone.
func errorBody(code int) []byte {
	if code >= 0 && code < len(errorBodies) && errorBodies[code] != nil {
		return errorBodies[code]
	}
	return []byte(strconv.Itoa(code) + "\n")
}

package peer

import (
	"io"
	"net/http"
	"strconv"
)

// Mux serves the same routes with net/http's own means.
func Mux() *http.ServeMux {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, contentType string, body []byte) {
		h := w.Header()
		h["Content-Type"] = []string{contentType}
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
		h["Server"] = serverField
		w.Write(body)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { answer(w, Text, greeting) })
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, JSON, status) })
	mux.HandleFunc("POST /api/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer(w, Text, body)
	})
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, JSON, []byte(`{"id":"`+r.PathValue("id")+`"}`))
	})
	numbered := func(pattern string, most int, contentType string, body func(n int) []byte) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			n, ok := number(r.PathValue("n"), most)
			if !ok {
				http.NotFound(w, r)
				return
			}
			answer(w, contentType, body(n))
		})
	}
	numbered("GET /bytes/{n}", MaxBytes, Binary, func(n int) []byte { return pattern[:n] })
	numbered("GET /middleware/{n}", MaxLayers, Text, chain)
	return mux
}

var serverField = []string{Server}

package workload

import (
	"github.com/qps-ladder/qps-ladder/shared/app"
	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// stable is the body that the application itself gives for a GET of path, so
// that the generator knows every byte of a large answer beforehand.
func stable(path string) []byte {
	var request http1.Request
	var response http1.Response
	request.Method, request.Target, request.Path = "GET", path, path
	application.Serve(&request, &response)
	return response.Body
}

var application = app.New(app.Options{})

package proxmox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// apiError is an error of the Proxmox VE API.
type apiError struct {
	code   int
	reason string            // in the HTTP status line, where clients read it
	fields map[string]string // parameter to problem, for 400
}

func (e *apiError) Error() string {
	if len(e.fields) == 0 {
		return e.reason
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(e.fields)) {
		parts = append(parts, k+": "+e.fields[k])
	}
	return e.reason + " (" + strings.Join(parts, "; ") + ")"
}

// internalError is Proxmox VE's answer when its code dies with a message: status 500 with this message.
func internalError(format string, args ...any) error {
	return &apiError{code: http.StatusInternalServerError, reason: fmt.Sprintf(format, args...)}
}

// invalid is a failed parameter verification.
func invalid(fields map[string]string) error {
	return &apiError{code: http.StatusBadRequest, reason: "Parameter verification failed.", fields: fields}
}

// forbidden is a missing privilege on an object.
func forbidden(path string, privileges ...string) error {
	return &apiError{
		code:   http.StatusForbidden,
		reason: fmt.Sprintf("Permission check failed (%s, %s)", path, strings.Join(privileges, "|")),
	}
}

func errNoConfig(node string, id int) error {
	return internalError("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", node, id)
}

// writeError answers with err. Proxmox VE puts the error text into the status line, and clients read it there. The
// standard library cannot set that text, so writeError takes the connection over, and closes it after the answer.
// HTTP/2 has no such text; there the message is only in the body.
func writeError(w http.ResponseWriter, err error, log *slog.Logger) {
	var api *apiError
	if !errors.As(err, &api) {
		api = &apiError{code: http.StatusInternalServerError, reason: err.Error()}
	}
	reason, _, _ := strings.Cut(api.reason, "\n")
	answer := map[string]any{"data": nil, "message": api.reason + "\n"}
	if len(api.fields) > 0 {
		answer["errors"] = api.fields
	}
	body, err := json.Marshal(answer)
	if err != nil {
		log.Error("answer", "err", err)
		return
	}
	if api.code >= firstProxyError {
		body = nil
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(api.code)
		if _, err := w.Write(body); err != nil {
			log.Debug("answer", "err", err)
		}
		return
	}
	conn, buf, err := hijacker.Hijack()
	if err != nil {
		log.Error("answer", "err", err)
		return
	}
	defer conn.Close()
	if err := writeStatus(buf.Writer, api.code, reason, body); err != nil {
		log.Debug("answer", "err", err)
	}
}

func writeStatus(w *bufio.Writer, code int, reason string, body []byte) error {
	if _, err := fmt.Fprintf(w, "HTTP/1.1 %d %s\r\nServer: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		code, reason, serverName, contentType, len(body)); err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	return w.Flush()
}

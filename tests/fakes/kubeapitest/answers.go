package kubeapitest

import (
	"fmt"
	"net/http"
	"strings"
)

// Refuse answers with a status, as an API server does.
func Refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":%q,"message":%q,"code":%d}`, reason,
		strings.ToLower(reason), code)
}

// Merge merges a patch into an object, as in RFC 7386, and reports whether that changed it. Lists are not compared.
func Merge(object, patch map[string]any) (changed bool) {
	for name, value := range patch {
		before, is := object[name]
		below, nested := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, name)
			changed = changed || is
		case nested:
			into, known := before.(map[string]any)
			if !known {
				into = map[string]any{}
				object[name] = into
			}
			changed = Merge(into, below) || changed
		default:
			_, text := value.(string)
			changed = changed || !text || before != value
			object[name] = value
		}
	}
	return changed
}

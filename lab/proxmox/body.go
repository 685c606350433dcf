package proxmox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
)

// readParameters returns the parameters of a call: those of the body, which only PUT and POST have, and those of the query, which
// win. As in pve-http-server, a body is JSON if its type says so, and a form otherwise.
func readParameters(r *http.Request, body []byte) (url.Values, error) {
	form := url.Values{}
	if r.Method == http.MethodPut || r.Method == http.MethodPost {
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		var err error
		if kind == "application/json" {
			form, err = readJSON(body)
		} else {
			form, err = url.ParseQuery(string(body))
		}
		if err != nil {
			return nil, err
		}
	}
	maps.Copy(form, r.URL.Query())
	return form, nil
}

// readJSON reads a JSON object of scalars. Proxmox VE's schemas know texts, numbers and booleans only, as one text each.
func readJSON(body []byte) (url.Values, error) {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, internalError("malformed JSON string: %s", err)
	}
	form, problems := url.Values{}, map[string]string{}
	for key, value := range object {
		switch value := value.(type) {
		case nil: // as if it were not there
		case string:
			form.Set(key, value)
		case json.Number:
			form.Set(key, value.String())
		case bool:
			form.Set(key, fmt.Sprint(bit(value)))
		case []any:
			problems[key] = "type check ('string') failed - got ARRAY"
		default:
			problems[key] = "type check ('string') failed - got HASH"
		}
	}
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	return form, nil
}

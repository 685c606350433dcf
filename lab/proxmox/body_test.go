package proxmox

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sendJSON sends a body as clients do that do not send forms.
func (w *world) sendJSON(method, path, body string) int {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.srv.URL+"/api2/json/"+path, strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Authorization", "PVEAPIToken="+w.token)
	res, err := w.srv.Client().Do(req)
	require.NoError(w.t, err)
	res.Body.Close()
	return res.StatusCode
}

func TestBody_MayBeJSON(t *testing.T) {
	w := newWorld(t)
	w.create()
	assert.Equal(t, http.StatusOK, w.sendJSON(http.MethodPut, machinePath+"config", `{"memory": 4096, "onboot": false, "description": "by JSON", "tags": null}`))
	config := w.get(machinePath + "config").(map[string]any)
	assert.EqualValues(t, "4096", config["memory"])
	assert.EqualValues(t, 0, config["onboot"])
	assert.Equal(t, "by JSON", config["description"])
	assert.Equal(t, "infra;talos", config["tags"], "null is as if it were not there")
}

func TestBody_InJSONThatIsWrongIsRefused(t *testing.T) {
	w := newWorld(t)
	w.create()
	for body, code := range map[string]int{
		`{"memory": `:           http.StatusInternalServerError,
		`memory=4096`:           http.StatusInternalServerError,
		`{"tags": ["a", "b"]}`:  http.StatusBadRequest,
		`{"nothing": "like"}`:   http.StatusBadRequest,
		`{"net0": {"a": "b"}}`:  http.StatusBadRequest,
		`{"onboot": "perhaps"}`: http.StatusBadRequest,
	} {
		assert.Equal(t, code, w.sendJSON(http.MethodPut, machinePath+"config", body), body)
	}
}

func TestBody_TheQueryWins(t *testing.T) {
	w := newWorld(t)
	w.create()
	require.Equal(t, http.StatusOK, w.sendJSON(http.MethodPut, machinePath+"config?description=query", `{"description": "body"}`))
	assert.Equal(t, "query", w.get(machinePath + "config").(map[string]any)["description"])
}

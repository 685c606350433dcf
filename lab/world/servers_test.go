package world

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/stackfile"
)

func TestCiliumMirrors_AnswerBelowThePathOfTheStackFile(t *testing.T) {
	w := World{stacks: []stackfile.File{
		{}, {CiliumRepository: "https://helm.cilium.io/"}, {CiliumRepository: "https://charts.example.test/mirrors/cilium/"},
	}}
	index := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.Path)) })
	mirrors, err := w.ciliumMirrors(index)
	require.NoError(t, err)
	require.Len(t, mirrors, 1, "Cilium's own repository is no mirror")
	hosts := join([]host{{name: "charts.example.test", port: "443", handler: named("another")}}, mirrors[0])
	for path, want := range map[string]string{"/mirrors/cilium/index.yaml": "/index.yaml", "/mirrors/index.yaml": "another"} {
		answer := httptest.NewRecorder()
		hosts[0].handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, want, answer.Body.String(), path)
	}
}

package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/stackfile"
)

func TestSourceSecrets_AreThoseOfTheKindOfSource(t *testing.T) {
	h, settings, err := home.Open(filepath.Join(t.TempDir(), "lab"), "/project", "")
	require.NoError(t, err)
	s := &Session{Home: h, Settings: settings}
	password := settings.Secrets.GitPassword
	require.NoError(t, os.MkdirAll(h.GitApp("git.example.test"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(h.GitApp("git.example.test"), "private-key.pem"), []byte("key"), 0o600))
	oci, bucket := &stackfile.OCI{URL: "oci://registry.example.test:5000/a/b"}, &stackfile.Bucket{Endpoint: "s3.example.test", Name: "b"}
	const url = "https://git.example.test/a/b.git"
	for _, one := range []struct {
		source stackfile.GitOps
		want   map[string]string
	}{
		{stackfile.GitOps{URL: url}, map[string]string{"slipway:gitPassword": password}},
		{stackfile.GitOps{URL: url, Public: true}, map[string]string{}},
		{stackfile.GitOps{URL: url, GitHubApp: &stackfile.GitHubApp{ID: 1}}, map[string]string{"slipway:githubAppPrivateKey": "key"}},
		{stackfile.GitOps{OCI: oci}, map[string]string{
			"slipway:ociConfig": `{"auths":{"registry.example.test:5000":{"password":"` + password + `","username":"flux"}}}`}},
		{stackfile.GitOps{OCI: oci, Public: true}, map[string]string{}},
		{stackfile.GitOps{Bucket: bucket}, map[string]string{"slipway:bucketAccessKey": home.AccessKey, "slipway:bucketSecretKey": password}},
	} {
		got, err := s.sourceSecrets(one.source)
		require.NoError(t, err)
		require.Equal(t, one.want, got)
		for key := range got {
			require.Contains(t, ownSecrets, key, "it is removed again when the source changes")
		}
	}
	_, err = s.sourceSecrets(stackfile.GitOps{URL: "https://other.example.test/a", GitHubApp: &stackfile.GitHubApp{}})
	require.ErrorContains(t, err, "GitHub App")
}

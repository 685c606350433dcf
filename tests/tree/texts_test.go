package tree

import (
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texts are fields with a text of the user's, by the folder that applies them, kind, and path.
var texts = []struct {
	setting, folder, kind string
	path                  []string
	values                []string // which YAML reads otherwise without quotes
}{
	{"ETCD_BACKUP_SCHEDULE", "backup/etcd/bucket", "CronJob", []string{"spec", "schedule"}, []string{"*/30 * * * *", "@daily", "? 3 * * *"}},
	{"ETCD_BACKUP_BUCKET", "backup/etcd/bucket", "CronJob", nil, []string{"20260801", "null"}},
	{"ETCD_BACKUP_REGION", "backup/etcd/bucket", "CronJob", nil, []string{"1", "on"}},
	{"DNS_KEY_NAME", "security/issuers/acme", "ClusterIssuer", nil, []string{"123", "true"}},
	{"ACME_EMAIL", "security/issuers/acme", "ClusterIssuer", []string{"spec", "acme", "email"}, []string{"*@example.com", "#@example.com"}},
	{"ACME_EMAIL", "security/issuers/acme-cloudflare", "ClusterIssuer", []string{"spec", "acme", "email"}, []string{"'a@example.com"}},
}

// Both engines replace variables in the text of a manifest, in which kustomize has left out the quotes that it did not need.
func TestTree_ATextStaysOneWhateverYAMLTakesItFor(t *testing.T) {
	for _, text := range texts {
		for _, value := range text.values {
			settings := with(with(stacks(t)[0].Settings(), withServer), map[string]string{text.setting: value})
			folder := path.Join("kubernetes/infrastructure", text.folder)
			byFlux, err := Build(checkout(t), folder, settings)
			require.NoError(t, err, "%s: %s", text.setting, value)
			byArgoCD, err := newPlugin(t, settings).render(folder)
			require.NoError(t, err, "%s: %s", text.setting, value)
			for _, objects := range [][]Object{byFlux[0].Objects, byArgoCD} {
				assert.True(t, holds(objects, text.kind, value, text.path), "%s: %s", text.setting, value)
			}
		}
	}
}

// holds tells whether an object of a kind has a text: at a path, or anywhere.
func holds(objects []Object, kind, value string, at []string) (found bool) {
	for _, object := range objects {
		if object.GetKind() != kind {
			continue
		}
		found = found || len(at) > 0 && object.Text(at...) == value
		walk(object.Object, nil, func(_ []string, _ string, field any) { found = found || len(at) == 0 && field == any(value) })
	}
	return found
}

package leftover

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
)

// record is one revision of a release, as Helm 3 stores it: a Secret labelled with its owner, name and revision.
type record struct {
	secret   string // name of the Secret
	revision string
	status   string // such as deployed or pending-upgrade
	chart    string // the chart's own name
}

// records returns the release's revisions in the cluster.
func (r Release) records(ctx context.Context, api *kubeapi.Client) ([]record, error) {
	var list corev1.SecretList
	selector := url.Values{"labelSelector": {"owner=helm,name=" + r.Name}}
	if _, err := api.ReadJSON(ctx, "/api/v1/namespaces/"+r.Namespace+"/secrets?"+selector.Encode(), &list); err != nil {
		return nil, err
	}
	records := make([]record, 0, len(list.Items))
	for _, secret := range list.Items {
		chart, err := chartOf(secret.Data["release"])
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w; remove it by hand if Helm did not create it", secret.Name, err)
		}
		records = append(records, record{
			secret: secret.Name, revision: secret.Labels["version"], status: secret.Labels["status"], chart: chart,
		})
	}
	return records, nil
}

// chartOf returns the chart's name in a record: JSON, compressed with gzip, in base64 by Helm, and again in base64 by Kubernetes.
func chartOf(data []byte) (string, error) {
	packed := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(packed, data)
	if err != nil {
		return "", fmt.Errorf("not a record of Helm's: %w", err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed[:n]))
	if err != nil {
		return "", fmt.Errorf("not a record of Helm's: %w", err)
	}
	var release struct {
		Chart struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"chart"`
	}
	if err := json.NewDecoder(plain).Decode(&release); err != nil {
		return "", fmt.Errorf("not a record of Helm's: %w", err)
	}
	return release.Chart.Metadata.Name, nil
}

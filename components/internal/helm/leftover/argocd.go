package leftover

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/engines/argocd/handover"
	"github.com/slipway-platform/slipway/internal/probe"
)

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

// argoCD is Argo CD as the owner of a release. While Argo CD owns the release, its plugin has a record beside the objects: a ConfigMap with
// the checksum of the values that Slipway sets.
type argoCD struct {
	release string
	every   time.Duration // between two looks at what has been tried
	seen    time.Duration // until the plugin of every repo-server sees a changed Secret
	limit   time.Duration // of Tried; 0 means triedLimit
}

func (a argoCD) String() string {
	return fmt.Sprintf("ConfigMap %s/%s", cluster.ArgoCDNamespace, cluster.ValuesSecret(a.release))
}

func (a argoCD) Command() string {
	return fmt.Sprintf("kubectl -n %s get applications", cluster.ArgoCDNamespace)
}

// Released makes sure that no Application applies the release.
func (a argoCD) Released(ctx context.Context, kubeconfig string) error {
	return inCluster(ctx, kubeconfig, a, func(ctx context.Context, api *kubeapi.Client) error {
		now, err := a.read(ctx, api)
		if err == nil && now.application != "" {
			return fmt.Errorf("says that the Application %s applies the release, and Pulumi is to change it; commit and push spec.suspend: true, "+
				"wait until Argo CD has removed this ConfigMap, and run up again; or write owner: argocd", now.application)
		}
		return err
	})
}

// applied is what the cluster has of a release that Argo CD owns.
type applied struct {
	application string // "" if Argo CD does not own the release
	checksum    string // of the values that Slipway sets, when the objects were rendered
	refreshing  bool   // the Application is about to compare anew
	phase       string // of the newest sync
}

func (a argoCD) read(ctx context.Context, api *kubeapi.Client) (applied, error) {
	var record corev1.ConfigMap
	const core = "/api/v1/namespaces/" + cluster.ArgoCDNamespace + "/configmaps/"
	found, err := api.ReadJSON(ctx, core+cluster.ValuesSecret(a.release), &record)
	name, _, tracked := strings.Cut(record.Annotations["argocd.argoproj.io/tracking-id"], ":")
	if err != nil || !found || !tracked {
		return applied{}, err
	}
	var app struct {
		Metadata struct{ Annotations map[string]string }
		Status   struct {
			OperationState struct{ Phase string } `json:"operationState"`
		}
	}
	// An Argo CD that is gone has left the record.
	found, err = api.ReadJSON(ctx, "/apis/argoproj.io/v1alpha1/namespaces/"+cluster.ArgoCDNamespace+"/applications/"+name, &app)
	if err != nil || !found {
		return applied{}, err
	}
	_, refreshing := app.Metadata.Annotations[handover.RefreshAnnotation]
	return applied{name, record.Data["checksum"], refreshing, app.Status.OperationState.Phase}, nil
}

// Tried returns once a sync with the values in the Secret has ended. Several repo-servers see the Secret at different times, and any of
// them renders after a request, also after that for another release. So nothing is asked before all see it; otherwise the values would go
// back and forth.
func (a argoCD) Tried(ctx context.Context, kubeconfig string) error {
	api, err := kubeapi.New([]byte(kubeconfig), requestTimeout)
	if err != nil {
		return err
	}
	ctx, cancel := probe.Within(ctx, cmp.Or(a.limit, triedLimit))
	defer cancel()
	var secret corev1.Secret
	const core = "/api/v1/namespaces/" + cluster.ArgoCDNamespace + "/secrets/"
	if found, err := api.ReadJSON(ctx, core+cluster.ValuesSecret(a.release), &secret); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	} else if !found {
		return nil
	}
	sum := sha256.Sum256(secret.Data[cluster.ValuesKey])
	want, begin := hex.EncodeToString(sum[:]), time.Now()
	var servers corev1.PodList
	const pods = "/api/v1/namespaces/" + cluster.ArgoCDNamespace + "/pods?fieldSelector=status.phase%3DRunning" +
		"&labelSelector=app.kubernetes.io/component%3Drepo-server"
	if _, err := api.ReadJSON(ctx, pods, &servers); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return probe.Wait{Every: a.every}.Until(ctx, a.String(), func(ctx context.Context) (string, error) {
		now, err := a.read(ctx, api)
		switch {
		case err != nil:
			return err.Error(), nil
		case now.application == "":
			return "", nil
		case len(servers.Items) > 1 && time.Since(begin) < a.seen:
			return "some of the repo-servers may not see the changed values yet", nil
		case now.checksum != want && !now.refreshing:
			annotations := map[string]any{handover.RefreshAnnotation: handover.RefreshHard}
			refresh := map[string]any{"metadata": map[string]any{"annotations": annotations}}
			objects := api.Objects.Resource(applications).Namespace(cluster.ArgoCDNamespace)
			if _, err := kubeapi.Merge(ctx, objects, now.application, refresh); err != nil {
				return err.Error(), nil
			}
			fallthrough
		case now.checksum != want:
			return "Argo CD has not tried the changed values yet", nil
		case now.phase == "Running":
			return "the sync of the Application " + now.application + " has not ended yet", nil
		}
		return "", nil
	})
}

package cilium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/lab/wait"
)

// gatewayController is the controller name of the GatewayClasses that Cilium's operator accepts.
const gatewayController = "io.cilium/gateway-controller"

var gatewayClasses = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gatewayclasses"}

// gatewayKinds returns the resources, by group and version, without which an operator of a version does not use the Gateway API.
func gatewayKinds(version string) map[string][]string {
	const v1 = "gateway.networking.k8s.io/v1"
	if olderThan120(version) {
		return map[string][]string{
			v1: {"gatewayclasses", "gateways", "httproutes", "grpcroutes"}, "gateway.networking.k8s.io/v1beta1": {"referencegrants"},
		}
	}
	return map[string][]string{v1: {
		"gatewayclasses", "gateways", "httproutes", "grpcroutes", "tlsroutes", "referencegrants", "backendtlspolicies",
	}}
}

func olderThan120(version string) bool { return semver.Compare("v"+version, "v1.20.0") < 0 }

// checkRoutes returns the error with which an operator before 1.20 ends: it takes TLSRoutes of v1alpha2 for usable if their CRD lists that
// version, although the standard channel does not serve it since the Gateway API 1.5.
func (o *operator) checkRoutes(ctx context.Context) error {
	if !olderThan120(version(o.Container)) {
		return nil
	}
	crd, err := o.Cluster.Dynamic.Resource(crdResource).Get(ctx, "tlsroutes.gateway.networking.k8s.io", metav1.GetOptions{})
	if err != nil {
		return nil // without the CRD, the operator does without the routes
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, one := range versions {
		if one, is := one.(map[string]any); is && one["name"] == "v1alpha2" && one["served"] == false {
			return errors.New(`no matches for kind "TLSRoute" in version "gateway.networking.k8s.io/v1alpha2"`)
		}
	}
	return nil
}

// gatewayAPI accepts Cilium's GatewayClasses. Like the real operator, it looks for the CRDs once, when it starts. If
// they are missing it logs this, and does not use the Gateway API until it is restarted.
func (o *operator) gatewayAPI(ctx context.Context) {
	fmt.Fprintln(o.Log, `level=info msg="Checking for required and optional GatewayAPI resources" subsys=gateway-api`)
	for {
		missing, err := o.missingGatewayKinds()
		if err == nil && len(missing) == 0 {
			break
		}
		if err == nil {
			fmt.Fprintf(o.Log, "level=error msg=\"Required GatewayAPI resources are not found, please refer to docs for installation instructions\" error=%q subsys=gateway-api\n",
				strings.Join(missing, "\n"))
			return
		}
		if !wait.Pause(ctx, time.Second) {
			return
		}
	}
	if err := o.checkRoutes(ctx); err != nil {
		fmt.Fprintf(o.Log, "level=fatal msg=\"failed to start\" error=%q subsys=cilium-operator\n", err)
		o.Exit(1)
		return
	}
	go o.gateways(ctx)
	informer := dynamicinformer.NewDynamicSharedInformerFactory(o.Cluster.Dynamic, 10*time.Second).ForResource(gatewayClasses).Informer()
	look := func(object any) {
		if class, ok := object.(*unstructured.Unstructured); ok && o.shared.isLeader(o) {
			if err := o.accept(ctx, class); err != nil && ctx.Err() == nil {
				fmt.Fprintf(o.Log, "level=error msg=\"Failed to update GatewayClass status\" gatewayClass=%s error=%q subsys=gateway-api\n",
					class.GetName(), err)
			}
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, object any) { look(object) }}); err != nil {
		fmt.Fprintf(o.Log, "level=error msg=\"no gateway classes\" error=%q subsys=gateway-api\n", err)
		return
	}
	informer.Run(ctx.Done())
}

// missingGatewayKinds lists the kinds that do not exist, in the API server's words.
func (o *operator) missingGatewayKinds() (missing []string, err error) {
	kinds := gatewayKinds(version(o.Container))
	for _, served := range slices.Sorted(maps.Keys(kinds)) {
		list, err := o.Cluster.Client.Discovery().ServerResourcesForGroupVersion(served)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		for _, resource := range kinds[served] {
			if err != nil || !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
				missing = append(missing, fmt.Sprintf("customresourcedefinitions.apiextensions.k8s.io %q not found",
					resource+".gateway.networking.k8s.io"))
			}
		}
	}
	return missing, nil
}

// accept sets the condition Accepted of a GatewayClass.
func (o *operator) accept(ctx context.Context, class *unstructured.Unstructured) error {
	controller, _, err := unstructured.NestedString(class.Object, "spec", "controllerName")
	if err != nil || controller != gatewayController {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(class.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Accepted" && c["status"] == "True" && c["observedGeneration"] == class.GetGeneration() {
			return nil
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{{Type: "Accepted",
		Status: metav1.ConditionTrue, Reason: "Accepted",
		Message: "Valid GatewayClass", ObservedGeneration: class.GetGeneration(), LastTransitionTime: metav1.Now()}}}})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Dynamic.Resource(gatewayClasses).Patch(ctx, class.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "cilium-operator"}, "status")
	return err
}

package versions

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Cilium is the declared Cilium.
type Cilium struct {
	Version string `json:"version,omitempty"` // of the chart, such as 1.18.7; "" means that nothing is checked
	Flux    bool   `json:"flux,omitempty"`    // Flux installs the version that Git declares

	// OwnGatewayAPI means that the CRDs of the Gateway API are not those of the project's standard channel.
	OwnGatewayAPI bool `json:"ownGatewayAPI,omitempty"`
}

// declared returns the declared version as semver writes it.
func (c Cilium) declared() string { return "v" + strings.TrimPrefix(c.Version, "v") }

// Problem returns why Cilium must not be changed from the versions that run to the declared one. Cilium's upgrade guide: only upgrades
// between consecutive minor releases are tested. Where Flux has installed a patch release that the checkout does not know yet, nothing is
// changed.
func (c Cilium) Problem(running []string) error {
	const path = "cilium.version"
	if c.Version == "" || len(running) == 0 {
		return nil
	}
	lowest, highest := slices.MinFunc(running, semver.Compare), slices.MaxFunc(running, semver.Compare)
	plain := func(version string) string { return strings.TrimPrefix(version, "v") }
	skip, err := minors(lowest, c.declared())
	if err != nil {
		return fmt.Errorf("%s: Cilium %s runs: %w", path, plain(lowest), err)
	}
	switch {
	case semver.Compare(c.declared(), highest) < 0 && !(c.Flux && semver.MajorMinor(c.declared()) == semver.MajorMinor(highest)):
		return fmt.Errorf("%s: %s is older than %s, which runs; roll back by hand, as Cilium's upgrade guide describes, and then declare what "+
			"runs, or declare %[3]s or a later one", path, c.Version, plain(highest))
	case skip > 1:
		return fmt.Errorf("%s: %s skips minor releases after %s, which runs; declare one minor release after the other, each in a run of its own",
			path, c.Version, plain(lowest))
	}
	return nil
}

// Demand is what the upgrade notes of a minor release of Cilium demand of the objects in the cluster, before that release runs.
type Demand struct {
	Into     string // minor release, such as v1.19
	Resource schema.GroupVersionResource
	Key      string // objects must not have this key, at any depth below spec and specs; "" means that there must be no object
	Below    string // key directly above Key; "" means any
	Value    string // prefix of the key's value; "" means any
	Warns    bool   // the objects mean something else afterwards, and the upgrade is made
	Standard bool   // only with the Gateway API's standard channel
	Says     string // what becomes of them, and the remedy
}

func ciliumResource(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cilium.io", Version: version, Resource: resource}
}

// Demands are those of the upgrade notes of 1.18 to 1.20 (Documentation/operations/upgrade.rst) that objects in the cluster can fail. What
// they demand of the chart's values is in package chart. Slipway itself sets what the notes say about policies of a mesh
// (policyDefaultLocalCluster) and about the mesh's certificates (authMode).
var Demands = slices.Concat(
	[]Demand{{
		Into: "v1.18", Resource: ciliumResource("v2", "ciliumexternalworkloads"),
		Says: "external workloads are removed; delete these objects",
	}, {
		Into: "v1.19", Resource: ciliumResource("v2alpha1", "ciliumbgppeeringpolicies"),
		Says: "BGP by this kind is removed; write CiliumBGPClusterConfig, CiliumBGPPeerConfig and CiliumBGPAdvertisement of cilium.io/v2, " +
			"and delete these objects",
	}},
	inPolicies(Demand{
		Into: "v1.19", Key: "fromRequires", Says: "fromRequires is removed; write fromEndpoints with all labels",
	}),
	inPolicies(Demand{
		Into: "v1.19", Key: "toRequires", Says: "toRequires is removed; write toEndpoints with all labels",
	}),
	inPolicies(Demand{
		Into: "v1.19", Key: "matchPattern", Value: "**.", Warns: true,
		Says: "**. in a DNS pattern then matches any number of subdomains, instead of one",
	}),
	inPolicies(Demand{Into: "v1.20", Below: "rules", Key: "kafka", Says: "rules of kafka are removed; remove them"}),
	inPolicies(Demand{Into: "v1.20", Below: "rules", Key: "l7proto", Says: "rules of l7proto are removed; remove them"}),
	[]Demand{{
		Into: "v1.20", Standard: true,
		Resource: schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1alpha2", Resource: "tlsroutes"},
		Says: "the Gateway API's standard CRDs do not serve the version in which these objects are stored, and they would be lost; " +
			"save them, and set crds.gatewayAPI.url to the experimental manifest of the same release",
	}},
)

// inPolicies returns a demand for both kinds of Cilium's network policies.
func inPolicies(of Demand) (both []Demand) {
	for _, resource := range []string{"ciliumnetworkpolicies", "ciliumclusterwidenetworkpolicies"} {
		of.Resource = ciliumResource("v2", resource)
		both = append(both, of)
	}
	return both
}

// Demanded returns the demands of the minor releases after those that run, up to the declared one.
func (c Cilium) Demanded(running []string) []Demand {
	if c.Version == "" || len(running) == 0 {
		return nil
	}
	from := semver.MajorMinor(slices.MinFunc(running, semver.Compare))
	return slices.DeleteFunc(slices.Clone(Demands), func(d Demand) bool {
		return semver.Compare(d.Into, from) <= 0 || semver.Compare(d.Into, semver.MajorMinor(c.declared())) > 0 ||
			d.Standard && c.OwnGatewayAPI
	})
}

// Fails reports whether an object fails the demand.
func (d Demand) Fails(object map[string]any) bool {
	return d.Key == "" || d.within("spec", object["spec"]) || d.within("specs", object["specs"])
}

// within reports whether the value of a key has the demand's key.
func (d Demand) within(above string, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			text, isText := item.(string)
			is := key == d.Key && (d.Below == "" || d.Below == above) && (d.Value == "" || isText && strings.HasPrefix(text, d.Value))
			if is || d.within(key, item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return d.within(above, item) })
	}
	return false
}

// Failed returns what is wrong with the objects that fail the demand.
func (d Demand) Failed(names []string) error {
	if len(names) == 0 {
		return nil
	}
	const most = 5
	list := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return errors.New(d.Resource.Resource + " " + list + ": with Cilium " + strings.TrimPrefix(d.Into, "v") + ", " + d.Says)
}

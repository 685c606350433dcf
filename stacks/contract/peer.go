package contract

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// Declared returns the outputs that follow from the stack file alone: texts, and an int for a number.
func Declared(c *cluster.Cluster) map[string]any {
	outputs := map[string]any{}
	for _, output := range Outputs() {
		if output.value == nil {
			continue
		}
		value := output.value(c)
		if value == nil {
			continue
		}
		if written := written(value); output.Number {
			outputs[output.Name], _ = strconv.Atoi(written)
		} else if written != "" || !output.Optional {
			outputs[output.Name] = written
		}
	}
	return outputs
}

// written returns a value, its target, or a list of both, as text.
func written(value any) string {
	if list, isList := value.([]any); isList {
		texts := make([]string, len(list))
		for i, one := range list {
			texts[i] = written(one)
		}
		return strings.Join(texts, ",")
	}
	if unset, is := value.(encoding.TextMarshaler); is { // an address that is not set is "", and "invalid IP" to fmt
		if text, err := unset.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(reflect.Indirect(reflect.ValueOf(value)))
}

// Unread is the reason why all outputs, or one, cannot be read.
type Unread struct {
	Problem, Remedy string

	Older bool // the outputs are of an older version, until the next run of their stack
}

const remedyUp = "run its `pulumi up` with this program"

// Read returns the cluster that the outputs of a stack describe, as far as they can be read, with what other clusters must know of it.
// Of a newer version it reads nothing, because the outputs may mean anything.
func Read(stack string, outputs map[string]any) (*cluster.Cluster, []Unread) {
	const versions = "was brought up with outputs of version %d, and this program has version %d"
	version, err := strconv.Atoi(cmp.Or(text(outputs[contractVersion]), "0"))
	switch {
	case err != nil:
		return nil, []Unread{{Problem: fmt.Sprintf("has the output %s: %v", contractVersion, err), Remedy: remedyUp}}
	case version > Version:
		return nil, []Unread{{Problem: fmt.Sprintf(versions, version, Version), Remedy: "update this checkout, which is older"}}
	}
	c := &cluster.Cluster{Stack: stack, Running: true}
	c.GitOps = cluster.GitOps{Enabled: true, Settings: map[string]string{cluster.DomainSetting: text(outputs[domainName])}}
	if text(outputs[nodeCIDR6]) != "" {
		c.Network.IPv6 = &cluster.IPv6{}
		if text(outputs[lbPoolStart6]) != "" {
			c.Network.IPv6.LoadBalancers = &cluster.IPv6LoadBalancers{}
		}
	}
	names := strings.Split(text(outputs[nodeNames]), ",")
	c.NodePools = []cluster.NodePool{{Nodes: make([]cluster.Node, len(names))}}

	var unread []Unread
	for _, output := range Outputs() {
		for _, problem := range output.read(c, text(outputs[output.Name])) {
			unread = append(unread, Unread{Problem: problem, Remedy: remedyUp})
		}
	}
	if version < Version { // it may lack outputs, or have them in another form
		return c, []Unread{{Problem: fmt.Sprintf(versions, version, Version), Remedy: remedyUp, Older: true}}
	}
	return c, unread
}

// read sets what an output says of a cluster, and returns the problems.
func (o Output) read(c *cluster.Cluster, given string) (problems []string) {
	if o.value == nil {
		return nil
	}
	into := o.value(c)
	list, isList := into.([]any)
	switch {
	case !isList && reflect.ValueOf(into).Kind() != reflect.Pointer: // nobody needs to know it, or the stack has none
		return nil
	case given == "" && o.absent:
		return nil
	case given == "":
		return []string{"has no output " + o.Name}
	}
	texts := []string{given}
	if isList {
		texts = strings.Split(given, ",")
	} else {
		list = []any{into}
	}
	if len(texts) != len(list) {
		return []string{fmt.Sprintf("has the output %s with %d items for %d machines", o.Name, len(texts), len(list))}
	}
	for i, text := range texts {
		if err := set(list[i], text); err != nil {
			problems = append(problems, fmt.Sprintf("has the output %s: %v", o.Name, err))
		}
	}
	return problems
}

// set parses a text into what a pointer points to.
func set(pointer any, text string) (err error) {
	switch into := reflect.ValueOf(pointer).Elem(); into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Int:
		var number int
		number, err = strconv.Atoi(text)
		into.SetInt(int64(number))
	default:
		err = pointer.(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}
	return err
}

// text returns an output as text. Pulumi reads numbers as float64.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

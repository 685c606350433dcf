package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// TestRemedies_LeadToAnAcceptedFile follows every remedy of the invalid fixtures that says to the letter what to do. If another problem
// comes up, it follows that one's, until the file is accepted or somebody has to choose: never back to a problem that was solved before.
func TestRemedies_LeadToAnAcceptedFile(t *testing.T) {
	followed, named := 0, 0
	for _, one := range fixtures.Invalid() {
		_, err := loadFixture(one.Name)
		var problem *cluster.Problem
		if !errors.As(err, &problem) || problem.Path == "" || slices.Contains(severalFaults, one.Name) {
			continue
		}
		named++
		remedies := remediesOf(problem)
		if len(remedies) > 0 {
			followed++
		}
		for _, remedy := range remedies {
			t.Run(one.Name+"/"+remedy.says, func(t *testing.T) {
				assert.NoError(t, follow(one.Text, remedy, []string{problem.Error()}))
			})
		}
	}
	t.Logf("%d of %d remedies can be followed to the letter", followed, named)
	assert.Greater(t, 2*followed, named, "most remedies name what to write")
}

// follow does what a remedy says and what the next one says, and returns why that leads nowhere. before are the problems so far.
func follow(text string, remedy remedy, before []string) error {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return nil // it is no YAML, and no remedy for its values
	}
	if !remedy.on(configMapping(&file)) && !remedy.on(file.Content[0]) {
		return fmt.Errorf("%q stands nowhere in the file", remedy.says)
	}
	changed, err := yaml.Marshal(&file)
	if err != nil {
		return err
	}
	_, err = loadText(fixtures.Tree(), "Pulumi.home.yaml", changed)
	var next *cluster.Problem
	if !errors.As(err, &next) {
		return err
	}
	trail := append(slices.Clone(before), remedy.says, next.Error())
	if slices.Contains(before, next.Error()) || len(trail) > 9 {
		return errors.New(strings.Join(trail, "\n"))
	}
	var dead error
	for _, one := range remediesOf(next) {
		if dead = follow(string(changed), one, trail); dead == nil {
			return nil
		}
	}
	return dead
}

// remedy is one of the ways that a problem's remedy names.
type remedy struct {
	says string
	on   func(config *yaml.Node) bool // changes the file; false if the path is not in it
}

var (
	meant    = regexp.MustCompile(`did you mean (.+?)\?`)
	written  = regexp.MustCompile(`^write ([^\s,]+(?:, [^\s,]+)*(?: or [^\s,]+)?)(?:, without quotes)?$`)
	numbered = regexp.MustCompile(`^write a (?:whole |length |number )?(?:number|length)? ?from (\S+?) to ([^\s,]+)`)
	limited  = regexp.MustCompile(`^write at (?:least|most) (\d\S*?)(?:,.*)?$`)
	likened  = regexp.MustCompile(`(?:such as|like) ("[^"]+"|\[[^]]+]|[^\s,]+?)(?:,| or |:? |$)`)
	within   = regexp.MustCompile(`^pick an address in (\S+)$`)
	setting  = regexp.MustCompile(`(?:set|declare|write) ([a-zA-Z]+(?:\.[a-zA-Z]+)+): (\S+?)(?:,|$)`)
	removed  = regexp.MustCompile(`^(?:remove (?:it|one|the key)|keep one)\b|, or remove (?:it|the key)\b`)
	unset    = regexp.MustCompile(`pulumi config rm slipway:(\w+)`)
	quoted   = regexp.MustCompile(`(?i)\b(?:put|write) it in quotes$`)
	tagged   = regexp.MustCompile(`^has (?:a key with )?the tag`)

	unseen = regexp.MustCompile(`^holds the character U\+([0-9A-F]+)`)
)

// remediesOf returns the ways that a remedy names to the letter.
func remediesOf(p *cluster.Problem) []remedy {
	var ways []remedy
	add := func(says string, on func(*yaml.Node) bool) { ways = append(ways, remedy{says, on}) }
	value := func(path, text string) { add(path+": "+text, func(c *yaml.Node) bool { return setAt(c, path, text) }) }
	if m := meant.FindStringSubmatch(p.Remedy); m != nil {
		add("meant "+m[1], func(c *yaml.Node) bool { return meanAt(c, p, m[1]) })
	}
	if m := setting.FindStringSubmatch(p.Remedy); m != nil {
		value(m[1], m[2])
	}
	if tagged.MatchString(p.Problem) {
		return []remedy{{"without its tag", func(c *yaml.Node) bool { return untagAt(c, p.Path) }}}
	}
	if removed.MatchString(p.Remedy) {
		add("remove", func(c *yaml.Node) bool { return removeAt(c, p.Path) })
	}
	if m := unset.FindStringSubmatch(p.Remedy); m != nil {
		add("unset "+m[1], func(c *yaml.Node) bool { return removeAt(c, m[1]) })
	}
	if quoted.MatchString(p.Remedy) {
		add("quote", func(c *yaml.Node) bool { return styleAt(c, p.Path, yaml.DoubleQuotedStyle) })
	}
	if m := unseen.FindStringSubmatch(p.Problem); m != nil {
		return []remedy{{"remove " + m[1], func(c *yaml.Node) bool { return withoutAt(c, p.Path, m[1]) }}}
	}
	switch words := written.FindStringSubmatch(p.Remedy); {
	case p.Remedy == "write one of the two, without quotes":
		value(p.Path, "true")
		value(p.Path, "false")
	case p.Remedy == "write it without quotes":
		add("unquote", func(c *yaml.Node) bool { return styleAt(c, p.Path, 0) })
	case limited.MatchString(p.Remedy):
		value(p.Path, limited.FindStringSubmatch(p.Remedy)[1])
	case numbered.MatchString(p.Remedy):
		m := numbered.FindStringSubmatch(p.Remedy)
		network, _, _ := strings.Cut(p.Problem, "/")
		for _, end := range m[1:] {
			if strings.HasPrefix(end, "/") {
				end = network + end
			}
			value(p.Path, end)
		}
	case within.MatchString(p.Remedy):
		address := netip.MustParsePrefix(within.FindStringSubmatch(p.Remedy)[1]).Masked().Addr()
		for range 60 {
			address = address.Next()
		}
		value(p.Path, address.String())
	case likened.MatchString(p.Remedy):
		text := likened.FindStringSubmatch(p.Remedy)[1]
		if strings.HasPrefix(p.Problem, "is not ") && strings.HasSuffix(p.Path, "]") {
			add("call it "+text, func(c *yaml.Node) bool { return meanAt(c, p, text) })
		} else {
			value(p.Path, text)
		}
	case words != nil && !slices.Contains([]string{"one", "it", "text", "numbers"}, words[1]):
		for word := range strings.FieldsFuncSeq(strings.ReplaceAll(words[1], " or ", ","), func(r rune) bool { return r == ',' }) {
			value(p.Path, strings.TrimSpace(word))
		}
	}
	return ways
}

// configMapping returns the mapping config of a stack file.
func configMapping(file *yaml.Node) *yaml.Node {
	top := file.Content[0]
	for i := 0; i < len(top.Content); i += 2 {
		if top.Content[i].Value == "config" {
			return top.Content[i+1]
		}
	}
	return top
}

// keyPlace is where a value stands: an item of a list, or a value after its key.
type keyPlace struct {
	parent *yaml.Node
	index  int // of the item or the value in Content
}

// placeOf returns the keyPlace of a path. The last key may be missing: then the index is -1, and key is what to add.
func placeOf(node *yaml.Node, path string) (at keyPlace, key string, found bool) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind == yaml.SequenceNode {
		item, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(item)
		if err != nil || i >= len(node.Content) {
			return keyPlace{}, "", false
		}
		return deeper(node, i, rest)
	}
	path = strings.TrimPrefix(path, ".")
	if node.Kind != yaml.MappingNode {
		return keyPlace{}, "", false
	}
	best, rest := -1, ""
	for i := 0; i < len(node.Content); i += 2 {
		name := strings.TrimPrefix(node.Content[i].Value, "slipway:")
		for _, written := range []string{name, "[" + strconv.Quote(name) + "]"} {
			if cluster.Within(path, written) && (best < 0 || len(path)-len(written) < len(rest)) {
				best, rest = i+1, path[len(written):]
			}
		}
	}
	if best >= 0 {
		return deeper(node, best, rest)
	}
	return keyPlace{node, -1}, path, !strings.Contains(path, "[")
}

func deeper(parent *yaml.Node, index int, rest string) (keyPlace, string, bool) {
	if rest == "" {
		return keyPlace{parent, index}, "", true
	}
	return placeOf(parent.Content[index], rest)
}

func setAt(config *yaml.Node, path, text string) bool {
	at, key, found := placeOf(config, path)
	var value yaml.Node
	if !found || yaml.Unmarshal([]byte(text), &value) != nil || len(value.Content) == 0 {
		return false
	}
	if at.index >= 0 {
		value.Content[0].Anchor = at.parent.Content[at.index].Anchor
		at.parent.Content[at.index] = value.Content[0]
		return true
	}
	if at.parent == config {
		key = "slipway:" + key
	}
	added, keys := value.Content[0], strings.Split(key, ".")
	for _, above := range slices.Backward(keys[1:]) {
		added = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: above}, added}}
	}
	at.parent.Content = append(at.parent.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: keys[0]}, added)
	return true
}

func removeAt(config *yaml.Node, path string) bool {
	at, _, found := placeOf(config, path)
	if !found || at.index < 0 {
		return false
	}
	first := at.index
	if at.parent.Kind == yaml.MappingNode {
		first--
	}
	name := at.parent.Content[first].Value
	at.parent.Content = slices.Delete(at.parent.Content, first, at.index+1)
	for i := first; at.parent.Kind == yaml.MappingNode && i < len(at.parent.Content); i += 2 { // given more than twice
		if at.parent.Content[i].Value == name {
			at.parent.Content = slices.Delete(at.parent.Content, i, i+2)
			i -= 2
		}
	}
	if len(at.parent.Content) == 0 {
		removeEmpty(config, at.parent)
	}
	return true
}

// removeEmpty removes what has nothing left, with its key.
func removeEmpty(node, empty *yaml.Node) {
	for i, child := range node.Content {
		if child != empty {
			removeEmpty(child, empty)
			continue
		}
		first := i
		if node.Kind == yaml.MappingNode {
			first--
		}
		node.Content = slices.Delete(node.Content, first, i+1)
		return
	}
}

// untagAt removes the tags of a value, its key and its neighbours.
func untagAt(config *yaml.Node, path string) bool {
	at, _, found := placeOf(config, path)
	if !found || at.index < 0 {
		return false
	}
	untag(at.parent)
	return true
}

func untag(node *yaml.Node) {
	if node.Style&yaml.TaggedStyle != 0 {
		node.Style, node.Tag = node.Style&^yaml.TaggedStyle, ""
	}
	for _, child := range node.Content {
		untag(child)
	}
}

// withoutAt removes a character, which is given by its number, from a text.
func withoutAt(config *yaml.Node, path, number string) bool {
	at, _, found := placeOf(config, path)
	char, err := strconv.ParseInt(number, 16, 32)
	if !found || at.index < 0 || err != nil {
		return false
	}
	node := at.parent.Content[at.index]
	node.Value = strings.ReplaceAll(node.Value, string(rune(char)), "")
	return true
}

// styleAt writes a value with or without quotes; the key, if that is what is wrong.
func styleAt(config *yaml.Node, path string, style yaml.Style) bool {
	at, _, found := placeOf(config, path)
	if !found || at.index < 0 {
		return false
	}
	for _, node := range at.parent.Content[max(0, at.index-1) : at.index+1] {
		if node.Kind == yaml.ScalarNode && !strings.HasPrefix(node.Value, "slipway:") {
			node.Style, node.Tag = style, ""
		}
	}
	return true
}

// meanAt writes what was meant: another key if the problem is one of the key.
func meanAt(config *yaml.Node, p *cluster.Problem, text string) bool {
	at, _, found := placeOf(config, p.Path)
	if !found || at.index < 0 {
		return false
	}
	if at.parent.Kind == yaml.SequenceNode {
		return setAt(config, p.Path, text)
	}
	key := at.parent.Content[at.index-1]
	if !strings.HasPrefix(p.Problem, "is ") && !strings.Contains(p.Problem, key.Value+" is no field") {
		return setAt(config, p.Path, text)
	}
	if strings.HasPrefix(key.Value, "slipway:") {
		text = "slipway:" + text
	}
	key.Value = text
	return true
}

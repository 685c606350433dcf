# Prints the manifests of this folder with the values of the cluster settings: the plugin cluster-settings of Argo CD runs it in bash, in a
# copy of the repository. Each file of $SETTINGS_DIR is a setting. It replaces what Flux's postBuild.substituteFrom replaces: ${NAME},
# ${NAME:=default}, ${NAME:-default}, and two dollars, which become one, so that ${NAME} with two stays as it is. A name without a value is
# an error, and so is another form of an expression. A folder without a kustomization gets one, as with Flux. What Flux would not remove with
# its manifest, by kustomize.toolkit.fluxcd.io/prune: disabled, Argo CD does not remove either, and does not count as out of sync.
set -euo pipefail

if ! [ -e kustomization.yaml ] && ! [ -e kustomization.yml ] && ! [ -e Kustomization ]; then
  kustomize create --autodetect --recursive
fi

kustomize build . | perl -e '
use strict;
my $settings = shift;
local $/;
my %values;

sub value {
  my ($name) = @_;
  return $values{$name} if exists $values{$name};
  open(my $file, "<", "$settings/$name") or return $values{$name} = undef;
  return $values{$name} = <$file> // "";
}

sub replaced {
  my ($expression) = @_;
  $expression =~ /^([A-Za-z_][A-Za-z0-9_]*)(?:(:?)[-=](.*))?$/s
    or die "\${$expression} is not a form that is replaced; write \${NAME}, \${NAME:=default} or \$\${NAME}\n";
  my ($name, $colon, $default) = ($1, $2, $3);
  my $value = value($name);
  return $value if defined $value && !(defined $default && $colon && $value eq "");
  return $default if defined $default;
  die "\${$name} is not a setting of this cluster; add it to gitops.settings of the stack file, or write \$\${$name}\n";
}

# kustomize writes labels and annotations of an object with four spaces, in blocks.
sub annotate {
  my ($metadata, $key, $value) = @_;
  return if ${$metadata} =~ s/^    \Q$key\E: (?:"(.*)"|\x27(.*)\x27|(.*))\n/"    $key: " . ($1 \/\/ $2 \/\/ $3) . ",$value\n"/me;
  ${$metadata} .= "  annotations:\n" unless ${$metadata} =~ /^  annotations:\n/m;
  ${$metadata} =~ s/^  annotations:\n/  annotations:\n    $key: $value\n/m;
}

for my $document (split(/^(?=---)/m, <STDIN>)) {
  my ($metadata) = $document =~ /^(metadata:\n(?: .*\n)*)/m;
  $metadata //= "";
  if ($metadata !~ m{^    kustomize\.toolkit\.fluxcd\.io/substitute: "?disabled}m) {
    $document =~ s/(\$\$)|\$\{([^{}]*)\}/defined $1 ? "\$" : replaced($2)/ge;
    ($metadata) = $document =~ /^(metadata:\n(?: .*\n)*)/m;
    $metadata //= "";
  }
  if ($metadata =~ m{^    kustomize\.toolkit\.fluxcd\.io/prune: "?disabled}m) {
    my $before = $metadata;
    annotate(\$metadata, "argocd.argoproj.io/sync-options", "Prune=false,Delete=false");
    annotate(\$metadata, "argocd.argoproj.io/compare-options", "IgnoreExtraneous");
    $document =~ s/\Q$before\E/$metadata/;
  }
  print $document;
}
' "$SETTINGS_DIR"

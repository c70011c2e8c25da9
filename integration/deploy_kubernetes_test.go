package integration

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// What the manifests use of Kubernetes' API, in its words: ConfigMap and Deployment. A field that is not here is refused.
type (
	manifest struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   metadata          `yaml:"metadata"`
		Data       map[string]string `yaml:"data"`
		Spec       struct {
			Replicas int `yaml:"replicas"`
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			} `yaml:"selector"`
			Template struct {
				Metadata metadata `yaml:"metadata"`
				Spec     pod      `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	metadata struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	}
	pod struct {
		TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
		AutomountServiceAccountToken  *bool       `yaml:"automountServiceAccountToken"`
		SecurityContext               security    `yaml:"securityContext"`
		InitContainers                []container `yaml:"initContainers"`
		Containers                    []container `yaml:"containers"`
		Volumes                       []struct {
			Name      string `yaml:"name"`
			ConfigMap *struct {
				Name string `yaml:"name"`
			} `yaml:"configMap"`
			Secret *struct {
				SecretName string `yaml:"secretName"`
			} `yaml:"secret"`
		} `yaml:"volumes"`
	}
	container struct {
		Name          string   `yaml:"name"`
		Image         string   `yaml:"image"`
		RestartPolicy string   `yaml:"restartPolicy"` // of an initContainer
		Args          []string `yaml:"args"`
		Ports         []struct {
			Name          string `yaml:"name"`
			ContainerPort int    `yaml:"containerPort"`
		} `yaml:"ports"`
		StartupProbe    *probe   `yaml:"startupProbe"`
		LivenessProbe   *probe   `yaml:"livenessProbe"`
		ReadinessProbe  *probe   `yaml:"readinessProbe"`
		SecurityContext security `yaml:"securityContext"`
		Resources       struct {
			Requests map[string]string `yaml:"requests"`
			Limits   map[string]string `yaml:"limits"`
		} `yaml:"resources"`
		VolumeMounts []struct {
			Name      string `yaml:"name"`
			MountPath string `yaml:"mountPath"`
			SubPath   string `yaml:"subPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	probe struct {
		HTTPGet struct {
			Path string `yaml:"path"`
			Port string `yaml:"port"`
		} `yaml:"httpGet"`
		PeriodSeconds    int `yaml:"periodSeconds"`
		TimeoutSeconds   int `yaml:"timeoutSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
	security struct {
		RunAsNonRoot             bool  `yaml:"runAsNonRoot"`
		RunAsUser                int   `yaml:"runAsUser"`
		RunAsGroup               int   `yaml:"runAsGroup"`
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
		SeccompProfile struct {
			Type string `yaml:"type"`
		} `yaml:"seccompProfile"`
	}
)

// TestKubernetes reads the manifests as strictly as an API server would, holds what belongs together in them against each
// other, and starts the relay as they say. Whether a cluster takes them, only a cluster can tell.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file      string
		relay     func(pod) container
		policy    string // the container's own
		readiness string
	}{
		{"sidecar.yaml", func(p pod) container { return p.InitContainers[0] }, "Always", ""},
		{"deployment.yaml", func(p pod) container { return p.Containers[0] }, "", "/readyz"},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			text, documents := readManifests(t, "../deploy/kubernetes/"+c.file)
			config, deployment := documents[0], documents[1]
			spec := deployment.Spec.Template.Spec
			relay := c.relay(spec)
			if config.APIVersion != "v1" || config.Kind != "ConfigMap" || deployment.APIVersion != "apps/v1" || deployment.Kind != "Deployment" {
				t.Errorf("%s %s and %s %s", config.APIVersion, config.Kind, deployment.APIVersion, deployment.Kind)
			}
			if deployment.Spec.Selector.MatchLabels["app"] == "" || deployment.Spec.Selector.MatchLabels["app"] != deployment.Spec.Template.Metadata.Labels["app"] {
				t.Error("the selector does not find its Pods")
			}
			if relay.RestartPolicy != c.policy {
				t.Errorf("restartPolicy %q, want %q", relay.RestartPolicy, c.policy)
			}
			if spec.TerminationGracePeriodSeconds < 30 {
				t.Errorf("%d s to end in, which is not more than stop_timeout", spec.TerminationGracePeriodSeconds)
			}
			relay.expectProbes(t, c.readiness)
			relay.expectConfined(t, spec.SecurityContext)
			spec.expectMounts(t, relay, config)
			startDeployed(t, deployed{
				args: relay.Args, config: config.Data["outboxd.yaml"], secrets: secretsOf(t, spec, relay, config, text),
			})
		})
	}
}

func readManifests(t *testing.T, file string) (text string, documents []manifest) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := yaml.NewDecoder(bytes.NewReader(content), yaml.Strict())
	for {
		var one manifest
		if err := in.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		documents = append(documents, one)
	}
	if len(documents) != 2 {
		t.Fatalf("%s has %d documents, want a ConfigMap and a Deployment", file, len(documents))
	}
	return string(content), documents
}

// expectProbes: what decides over a restart asks for no database; what decides over traffic is there only where the relay
// is a Pod of its own.
func (c container) expectProbes(t *testing.T, readiness string) {
	t.Helper()
	for what, p := range map[string]struct {
		probe *probe
		path  string
	}{"startup": {c.StartupProbe, "/livez"}, "liveness": {c.LivenessProbe, "/livez"}, "readiness": {c.ReadinessProbe, readiness}} {
		switch {
		case p.path == "" && p.probe == nil:
		case p.path == "" || p.probe == nil || p.probe.HTTPGet.Path != p.path:
			t.Errorf("%s probe: %+v, want %q", what, p.probe, p.path)
		case len(c.Ports) != 1 || c.Ports[0].ContainerPort != 9465 || p.probe.HTTPGet.Port != c.Ports[0].Name:
			t.Errorf("%s probe asks at port %s, and the ports are %v", what, p.probe.HTTPGet.Port, c.Ports)
		}
	}
}

// expectConfined: no root, nothing to write to, no capabilities; by the container or by its Pod.
func (c container) expectConfined(t *testing.T, p security) {
	t.Helper()
	s := c.SecurityContext
	if !s.RunAsNonRoot && !p.RunAsNonRoot || max(s.RunAsUser, p.RunAsUser) != 65532 || max(s.RunAsGroup, p.RunAsGroup) != 65532 {
		t.Errorf("it runs as %d:%d", max(s.RunAsUser, p.RunAsUser), max(s.RunAsGroup, p.RunAsGroup))
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || s.SeccompProfile.Type+p.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("it is not confined: %+v, %+v", s, p)
	}
}

// expectMounts: the configuration lies where the arguments say, and all that is mounted is there.
func (p pod) expectMounts(t *testing.T, c container, config manifest) {
	t.Helper()
	sources := map[string]string{}
	for _, v := range p.Volumes {
		switch {
		case v.ConfigMap != nil:
			sources[v.Name] = v.ConfigMap.Name
		case v.Secret != nil:
			sources[v.Name] = v.Secret.SecretName
		}
	}
	found := false
	for _, m := range c.VolumeMounts {
		if sources[m.Name] == "" || !m.ReadOnly {
			t.Errorf("%s mounts %q, which is no volume or can be written", m.MountPath, m.Name)
		}
		_, there := config.Data[m.SubPath]
		found = found || m.SubPath != "" && there && sources[m.Name] == config.Metadata.Name && m.MountPath == c.Args[len(c.Args)-1]
	}
	if !found {
		t.Errorf("%q names no file that is mounted of the ConfigMap", c.Args)
	}
}

// secretsOf are the files that the configuration names. The command in the manifest's comment makes each of them.
func secretsOf(t *testing.T, p pod, c container, config manifest, text string) (files []string) {
	t.Helper()
	folder := ""
	for _, v := range p.Volumes {
		for _, m := range c.VolumeMounts {
			if v.Secret != nil && v.Name == m.Name {
				folder = m.MountPath
				if !strings.Contains(text, "kubectl create secret generic "+v.Secret.SecretName+" ") {
					t.Errorf("nothing says how the secret %s is made", v.Secret.SecretName)
				}
			}
		}
	}
	for _, match := range regexp.MustCompile(`_file: (\S+)`).FindAllStringSubmatch(config.Data["outboxd.yaml"], -1) {
		if file := path.Base(match[1]); path.Dir(match[1]) != folder || !strings.Contains(text, "--from-file="+file) {
			t.Errorf("%s is not in the secret", match[1])
		}
		files = append(files, match[1])
	}
	return files
}

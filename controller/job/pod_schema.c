#include "controller/job/pod_schema.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Each type: its name, then its fields. Those whose value is an object with fields of its
 * own, or a list of such, say of which type; maps, as of labels, are not looked into, and
 * neither are ephemeral containers, which no job may have (pod_security.h). */
static const char *const types[] = {
    "AWSElasticBlockStoreVolumeSource fsType partition readOnly volumeID",
    "Affinity nodeAffinity:NodeAffinity podAffinity:PodAffinity "
    "podAntiAffinity:PodAntiAffinity",
    "AppArmorProfile localhostProfile type",
    "AzureDiskVolumeSource cachingMode diskName diskURI fsType kind readOnly",
    "AzureFileVolumeSource readOnly secretName shareName",
    "CSIVolumeSource driver fsType nodePublishSecretRef:LocalObjectReference "
    "readOnly volumeAttributes",
    "Capabilities add drop",
    "CephFSVolumeSource monitors path readOnly secretFile "
    "secretRef:LocalObjectReference user",
    "CinderVolumeSource fsType readOnly secretRef:LocalObjectReference volumeID",
    "ClaimSource resourceClaimName resourceClaimTemplateName",
    "ClusterTrustBundleProjection labelSelector:LabelSelector name optional path "
    "signerName",
    "ConfigMapEnvSource name optional",
    "ConfigMapKeySelector key name optional",
    "ConfigMapProjection items:KeyToPath name optional",
    "ConfigMapVolumeSource defaultMode items:KeyToPath name optional",
    "Container args command env:EnvVar envFrom:EnvFromSource image imagePullPolicy "
    "lifecycle:Lifecycle livenessProbe:Probe name ports:ContainerPort "
    "readinessProbe:Probe resizePolicy:ContainerResizePolicy "
    "resources:ResourceRequirements restartPolicy "
    "restartPolicyRules:ContainerRestartRule securityContext:SecurityContext "
    "startupProbe:Probe stdin stdinOnce terminationMessagePath "
    "terminationMessagePolicy tty volumeDevices:VolumeDevice "
    "volumeMounts:VolumeMount workingDir",
    "ContainerPort containerPort hostIP hostPort name protocol",
    "ContainerResizePolicy resourceName restartPolicy",
    "ContainerRestartRule action exitCodes:ContainerRestartRuleOnExitCodes",
    "ContainerRestartRuleOnExitCodes operator values",
    "DownwardAPIProjection items:DownwardAPIVolumeFile",
    "DownwardAPIVolumeFile fieldRef:ObjectFieldSelector mode path "
    "resourceFieldRef:ResourceFieldSelector",
    "DownwardAPIVolumeSource defaultMode items:DownwardAPIVolumeFile",
    "EmptyDirVolumeSource medium sizeLimit",
    "EnvFromSource configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource",
    "EnvVar name value valueFrom:EnvVarSource",
    "EnvVarSource configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector "
    "fileKeyRef:FileKeySelector resourceFieldRef:ResourceFieldSelector "
    "secretKeyRef:SecretKeySelector",
    "EphemeralVolumeSource volumeClaimTemplate:PersistentVolumeClaimTemplate",
    "ExecAction command",
    "FCVolumeSource fsType lun readOnly targetWWNs wwids",
    "FileKeySelector key optional path volumeName",
    "FlexVolumeSource driver fsType options readOnly secretRef:LocalObjectReference",
    "FlockerVolumeSource datasetName datasetUUID",
    "GCEPersistentDiskVolumeSource fsType partition pdName readOnly",
    "GRPCAction port service",
    "GitRepoVolumeSource directory repository revision",
    "GlusterfsVolumeSource endpoints path readOnly",
    "HTTPGetAction host httpHeaders:HTTPHeader path port scheme",
    "HTTPHeader name value",
    "HostAlias hostnames ip",
    "HostPathVolumeSource path type",
    "ISCSIVolumeSource chapAuthDiscovery chapAuthSession fsType initiatorName iqn "
    "iscsiInterface lun portals readOnly secretRef:LocalObjectReference "
    "targetPortal",
    "ImageVolumeSource pullPolicy reference",
    "KeyToPath key mode path",
    "LabelSelector matchExpressions:LabelSelectorRequirement matchLabels",
    "LabelSelectorRequirement key operator values",
    "Lifecycle postStart:LifecycleHandler preStop:LifecycleHandler stopSignal",
    "LifecycleHandler exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction "
    "tcpSocket:TCPSocketAction",
    "LocalObjectReference name",
    "ManagedFieldsEntry apiVersion fieldsType fieldsV1 manager operation "
    "subresource time",
    "NFSVolumeSource path readOnly server",
    "NodeAffinity "
    "preferredDuringSchedulingIgnoredDuringExecution:PreferredSchedulingTerm "
    "requiredDuringSchedulingIgnoredDuringExecution:NodeSelector",
    "NodeSelector nodeSelectorTerms:NodeSelectorTerm",
    "NodeSelectorRequirement key operator values",
    "NodeSelectorTerm matchExpressions:NodeSelectorRequirement "
    "matchFields:NodeSelectorRequirement",
    "ObjectFieldSelector apiVersion fieldPath",
    "ObjectMeta annotations creationTimestamp deletionGracePeriodSeconds "
    "deletionTimestamp finalizers generateName generation labels "
    "managedFields:ManagedFieldsEntry name namespace ownerReferences:OwnerReference "
    "resourceVersion selfLink uid",
    "OwnerReference apiVersion blockOwnerDeletion controller kind name uid",
    "PersistentVolumeClaimSpec accessModes dataSource:TypedLocalObjectReference "
    "dataSourceRef:TypedObjectReference resources:VolumeResourceRequirements "
    "selector:LabelSelector storageClassName volumeAttributesClassName volumeMode "
    "volumeName",
    "PersistentVolumeClaimTemplate metadata:ObjectMeta "
    "spec:PersistentVolumeClaimSpec",
    "PersistentVolumeClaimVolumeSource claimName readOnly",
    "PhotonPersistentDiskVolumeSource fsType pdID",
    "PodAffinity "
    "preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm "
    "requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm",
    "PodAffinityTerm labelSelector:LabelSelector matchLabelKeys mismatchLabelKeys "
    "namespaceSelector:LabelSelector namespaces topologyKey",
    "PodAntiAffinity "
    "preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm "
    "requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm",
    "PodCertificateProjection certificateChainPath credentialBundlePath keyPath "
    "keyType maxExpirationSeconds signerName",
    "PodDNSConfig nameservers options:PodDNSConfigOption searches",
    "PodDNSConfigOption name value",
    "PodOS name",
    "PodReadinessGate conditionType",
    "PodResourceClaim name resourceClaimName resourceClaimTemplateName "
    "source:ClaimSource",
    "PodSchedulingGate name",
    "PodSecurityContext appArmorProfile:AppArmorProfile fsGroup fsGroupChangePolicy "
    "runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy "
    "seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile supplementalGroups "
    "supplementalGroupsPolicy sysctls:Sysctl "
    "windowsOptions:WindowsSecurityContextOptions",
    "PodSpec activeDeadlineSeconds affinity:Affinity automountServiceAccountToken "
    "containers:Container dnsConfig:PodDNSConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers hostAliases:HostAlias hostIPC hostNetwork hostPID "
    "hostUsers hostname hostnameOverride imagePullSecrets:LocalObjectReference "
    "initContainers:Container nodeName nodeSelector os:PodOS overhead "
    "preemptionPolicy priority priorityClassName readinessGates:PodReadinessGate "
    "resourceClaims:PodResourceClaim resources:ResourceRequirements restartPolicy "
    "runtimeClassName schedulerName schedulingGates:PodSchedulingGate "
    "securityContext:PodSecurityContext serviceAccount serviceAccountName "
    "setHostnameAsFQDN shareProcessNamespace subdomain "
    "terminationGracePeriodSeconds tolerations:Toleration "
    "topologySpreadConstraints:TopologySpreadConstraint volumes:Volume",
    "PodTemplateSpec metadata:ObjectMeta spec:PodSpec",
    "PortworxVolumeSource fsType readOnly volumeID",
    "PreferredSchedulingTerm preference:NodeSelectorTerm weight",
    "Probe exec:ExecAction failureThreshold grpc:GRPCAction httpGet:HTTPGetAction "
    "initialDelaySeconds periodSeconds successThreshold tcpSocket:TCPSocketAction "
    "terminationGracePeriodSeconds timeoutSeconds",
    "ProjectedVolumeSource defaultMode sources:VolumeProjection",
    "QuobyteVolumeSource group readOnly registry tenant user volume",
    "RBDVolumeSource fsType image keyring monitors pool readOnly "
    "secretRef:LocalObjectReference user",
    "ResourceClaim name request",
    "ResourceFieldSelector containerName divisor resource",
    "ResourceRequirements claims:ResourceClaim limits requests",
    "SELinuxOptions level role type user",
    "ScaleIOVolumeSource fsType gateway protectionDomain readOnly "
    "secretRef:LocalObjectReference sslEnabled storageMode storagePool system "
    "volumeName",
    "SeccompProfile localhostProfile type",
    "SecretEnvSource name optional",
    "SecretKeySelector key name optional",
    "SecretProjection items:KeyToPath name optional",
    "SecretVolumeSource defaultMode items:KeyToPath optional secretName",
    "SecurityContext allowPrivilegeEscalation appArmorProfile:AppArmorProfile "
    "capabilities:Capabilities privileged procMount readOnlyRootFilesystem "
    "runAsGroup runAsNonRoot runAsUser seLinuxOptions:SELinuxOptions "
    "seccompProfile:SeccompProfile windowsOptions:WindowsSecurityContextOptions",
    "ServiceAccountTokenProjection audience expirationSeconds path",
    "SleepAction seconds",
    "StorageOSVolumeSource fsType readOnly secretRef:LocalObjectReference "
    "volumeName volumeNamespace",
    "Sysctl name value",
    "TCPSocketAction host port",
    "Toleration effect key operator tolerationSeconds value",
    "TopologySpreadConstraint labelSelector:LabelSelector matchLabelKeys maxSkew "
    "minDomains nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable",
    "TypedLocalObjectReference apiGroup kind name",
    "TypedObjectReference apiGroup kind name namespace",
    "Volume awsElasticBlockStore:AWSElasticBlockStoreVolumeSource "
    "azureDisk:AzureDiskVolumeSource azureFile:AzureFileVolumeSource "
    "cephfs:CephFSVolumeSource cinder:CinderVolumeSource "
    "configMap:ConfigMapVolumeSource csi:CSIVolumeSource "
    "downwardAPI:DownwardAPIVolumeSource emptyDir:EmptyDirVolumeSource "
    "ephemeral:EphemeralVolumeSource fc:FCVolumeSource flexVolume:FlexVolumeSource "
    "flocker:FlockerVolumeSource gcePersistentDisk:GCEPersistentDiskVolumeSource "
    "gitRepo:GitRepoVolumeSource glusterfs:GlusterfsVolumeSource "
    "hostPath:HostPathVolumeSource image:ImageVolumeSource iscsi:ISCSIVolumeSource "
    "name nfs:NFSVolumeSource "
    "persistentVolumeClaim:PersistentVolumeClaimVolumeSource "
    "photonPersistentDisk:PhotonPersistentDiskVolumeSource "
    "portworxVolume:PortworxVolumeSource projected:ProjectedVolumeSource "
    "quobyte:QuobyteVolumeSource rbd:RBDVolumeSource scaleIO:ScaleIOVolumeSource "
    "secret:SecretVolumeSource storageos:StorageOSVolumeSource "
    "vsphereVolume:VsphereVirtualDiskVolumeSource",
    "VolumeDevice devicePath name",
    "VolumeMount mountPath mountPropagation name readOnly recursiveReadOnly subPath "
    "subPathExpr",
    "VolumeProjection clusterTrustBundle:ClusterTrustBundleProjection "
    "configMap:ConfigMapProjection downwardAPI:DownwardAPIProjection "
    "podCertificate:PodCertificateProjection secret:SecretProjection "
    "serviceAccountToken:ServiceAccountTokenProjection",
    "VolumeResourceRequirements limits requests",
    "VsphereVirtualDiskVolumeSource fsType storagePolicyID storagePolicyName "
    "volumePath",
    "WeightedPodAffinityTerm podAffinityTerm:PodAffinityTerm weight",
    "WindowsSecurityContextOptions gmsaCredentialSpec gmsaCredentialSpecName "
    "hostProcess runAsUserName",
};

/* A word of `types`: "name" or "name:Type". */
struct word {
    const char *name, *type;
    size_t name_length, type_length; /* type_length 0: none */
};

/* The word at `*at`, which then is the next; false at the end. */
static bool next_word(const char **at, struct word *ret)
{
    if (!**at)
        return false;
    ret->name = *at;
    ret->name_length = strcspn(*at, ": ");
    ret->type = ret->name + ret->name_length;
    ret->type += *ret->type == ':';
    ret->type_length = strcspn(ret->type, " ");
    *at = ret->type + ret->type_length;
    *at += **at == ' ';
    return true;
}

static bool is_word(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && !memcmp(text, name, length);
}

/* The fields of a type, behind its name. */
static const char *find_type(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *at = types[i];
        struct word first;
        next_word(&at, &first);
        if (first.name_length == length && !memcmp(first.name, name, length))
            return at;
    }
    return NULL;
}

static bool find_field(const char *fields, const char *name, struct word *ret)
{
    while (next_word(&fields, ret))
        if (is_word(ret->name, ret->name_length, name))
            return true;
    return false;
}

/* ---- what was meant ---- */

/* Longer names are like no field. */
#define MOST_LETTERS 64

/* Letters to add, take out, change, or swap with the next to make `b` of `a`, whatever
 * their case (optimal string alignment). */
static size_t count_edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][MOST_LETTERS + 1];
    size_t *older = rows[0], *above = rows[1], *row = rows[2];
    for (size_t k = 0; k <= b_length; k++)
        row[k] = k;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *free_row = older;
        older = above;
        above = row;
        row = free_row;
        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            bool differs = strncasecmp(a + i - 1, b + k - 1, 1) != 0;
            size_t least = above[k - 1] + differs;
            if (above[k] + 1 < least)
                least = above[k] + 1;
            if (row[k - 1] + 1 < least)
                least = row[k - 1] + 1;
            if (i > 1 && k > 1 && !strncasecmp(a + i - 1, b + k - 2, 1) &&
                !strncasecmp(a + i - 2, b + k - 1, 1) && older[k - 2] + 1 < least)
                least = older[k - 2] + 1;
            row[k] = least;
        }
    }
    return row[b_length];
}

/* The field that `name` is a misspelling of: at most one letter in three is wrong. */
static bool find_nearest(const char *fields, const char *name, struct word *ret)
{
    size_t length = strlen(name);
    size_t least = length / 3 + 1;
    bool is_found = false;
    if (length > MOST_LETTERS)
        return false;
    for (struct word word; next_word(&fields, &word);) {
        size_t edits = count_edits(name, length, word.name, word.name_length);
        if (edits < least) {
            least = edits;
            *ret = word;
            is_found = true;
        }
    }
    return is_found;
}

/* The name of a type that has a field of that name. */
static bool find_owner(const char *field, struct word *ret)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *at = types[i];
        struct word ignored;
        next_word(&at, ret);
        if (find_field(at, field, &ignored))
            return true;
    }
    return false;
}

static int refuse(const struct het_view *field, const struct word *type,
                  const char *fields, struct het_error *err)
{
    struct word other;
    auto_free char *meant = NULL;
    if (find_nearest(fields, field->key, &other))
        meant = xasprintf("did you mean %.*s?", (int)other.name_length, other.name);
    else if (find_owner(field->key, &other))
        meant = xasprintf("it is one of %.*s; move it there, or remove it",
                          (int)other.name_length, other.name);
    return het_view_fail(field, err, "is no field of %.*s in Kubernetes 1.30 to 1.%d; %s",
                         (int)type->type_length, type->type, POD_SCHEMA_MINOR,
                         meant ? meant : "remove it");
}

/* ---- the template ---- */

/* `type` is the word that leads to `value`. */
static int check_value(const struct het_view *value, const struct word *type,
                       struct het_error *err)
{
    for (size_t i = 0; i < json_array_size(value->json); i++) {
        struct het_view entry = het_view_at(value, i);
        if (!json_is_array(entry.json) && check_value(&entry, type, err) < 0)
            return -1;
    }
    if (!json_is_object(value->json))
        return 0;
    const char *fields = find_type(type->type, type->type_length), *key;
    assert(fields);
    json_t *ignored;
    json_object_foreach ((json_t *)(uintptr_t)value->json, key, ignored) {
        struct het_view member = het_view_get(value, key);
        struct word field;
        if (!find_field(fields, key, &field))
            return refuse(&member, type, fields, err);
        if (field.type_length && check_value(&member, &field, err) < 0)
            return -1;
    }
    return 0;
}

int pod_schema_check(const struct het_view *pod_template, struct het_error *err)
{
    static const char root[] = "PodTemplateSpec";
    struct word type = { .type = root, .type_length = strlen(root) };
    return check_value(pod_template, &type, err);
}

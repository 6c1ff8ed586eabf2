/* In whose name an object store is asked, by the environment and by profiles. */
#include "fault_alloc.h"
#include "remote/identity.h"
#include "remote/profile.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { VARIABLES = 4 };

#define ROLE	    "[default]\nrole_arn=arn\n"
#define RELATIVE    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI="
#define FULL	    "AWS_CONTAINER_CREDENTIALS_FULL_URI="
#define TOKEN	    "AWS_CONTAINER_AUTHORIZATION_TOKEN=shown"
#define NO_INSTANCE "AWS_EC2_METADATA_DISABLED=true"
#define KEYS	    "aws_access_key_id=A\naws_secret_access_key=S\n"

/* The fetcher keeps an identity until it ends, so the program has no such function. */
static void release_identity(struct h5_identity *identity)
{
	char *owned[] = {identity->role,     identity->session, identity->external, identity->file,
			 identity->token,    identity->url,	identity->sts,	    identity->profile,
			 identity->files[0], identity->files[1]};

	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
		free(owned[i]);
	h5_grant_release(&identity->keys);
}

/* Makes a file of profiles: its descriptor, and its name. */
static int write_profiles(const char *text, char name[40])
{
	int fd = memfd_create("profiles", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	snprintf(name, 40, "/proc/self/fd/%d", fd);
	return fd;
}

static const char *last_why;
static unsigned long failing_allocation; /* 0: none */
static bool has_fired;

/* But for where a build that counts lines puts its counts. */
static void clear_environment(void)
{
	const char *prefix = getenv("GCOV_PREFIX");
	char *kept = prefix ? strdup(prefix) : NULL;

	clearenv();
	if (kept)
		setenv("GCOV_PREFIX", kept, 1);
	free(kept);
}

/* The environment is nothing but the files of profiles, and these variables: "NAME=VALUE", up to NULL. */
static int find_at(const char *text, const char *const variables[VARIABLES], const char *endpoint,
		   bool anonymous, struct h5_identity *identity, struct h5_s3 *s3)
{
	char name[40];
	int rc, fd = write_profiles(text, name);

	clear_environment();
	setenv("AWS_REGION", "r", 1);
	setenv("AWS_CONFIG_FILE", "/no/file", 1);
	setenv("AWS_SHARED_CREDENTIALS_FILE", name, 1);
	for (size_t i = 0; i < VARIABLES && variables[i]; i++)
		putenv((char *)variables[i]);
	fault_alloc_arm(failing_allocation);
	fault_alloc_count(true);
	rc = h5_identity_find(identity, s3, endpoint, anonymous, &last_why);
	fault_alloc_count(false);
	has_fired = fault_alloc_disarm();
	close(fd);
	return rc;
}

static int find_identity(const char *text, const char *const variables[VARIABLES],
			 struct h5_identity *identity)
{
	struct h5_s3 s3 = {0};
	int rc = find_at(text, variables, NULL, false, identity, &s3);

	free(s3.endpoint);
	ck_assert(!rc || strcmp(last_why, "no memory"));
	return rc;
}

/* ---- containers ---- */

/* A relative URI is a path on the server that containers have. A full one may name another server. */
START_TEST(containers)
{
	static const struct {
		const char *variables[VARIABLES], *url;
		int rc;
	} cases[] = {
		{{TOKEN, RELATIVE "/v2/x"}, "http://169.254.170.2/v2/x", 0},
		{{TOKEN, RELATIVE "/v2/x", FULL "https://server/y"}, "http://169.254.170.2/v2/x", 0},
		{{TOKEN, FULL "https://server/y"}, "https://server/y", 0},
		{{TOKEN, FULL "http://127.0.0.1:80/y"}, "http://127.0.0.1:80/y", 0},
		{{TOKEN, FULL "http://server/y"}, NULL, -EINVAL},
		{{TOKEN, RELATIVE ".evil/x"}, NULL, -EINVAL}, /* it would be another server's name */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_identity identity = {0};
		int rc = find_identity("", cases[i].variables, &identity);

		ck_assert_msg(rc == cases[i].rc, "%zu: %d", i, rc);
		ck_assert_int_eq(identity.from, H5_FROM_CONTAINER);
		if (!rc) {
			ck_assert_str_eq(identity.url, cases[i].url);
			ck_assert_str_eq(identity.token, "shown");
			ck_assert_ptr_null(identity.file);
		}
		release_identity(&identity);
	}
}
END_TEST

/* What to show is in the file if one is named. */
START_TEST(a_token_in_a_file)
{
	const char *const variables[VARIABLES] = {TOKEN, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/t",
						  RELATIVE "/v2/x"};
	struct h5_identity identity = {0};

	ck_assert_int_eq(find_identity("", variables, &identity), 0);
	ck_assert_str_eq(identity.file, "/t");
	ck_assert_ptr_null(identity.token);
	release_identity(&identity);
}
END_TEST

/* ---- profiles ---- */

/* A profile names a role: which source gives its credentials, and which profiles are refused. */
START_TEST(roles_of_profiles)
{
	static const struct {
		const char *profiles, *variables[VARIABLES];
		int rc;
		enum h5_identity_from from;
	} cases[] = {
		{ROLE "credential_source=EcsContainer\n", {RELATIVE "/v2/x"}, 0, H5_FROM_CONTAINER},
		{ROLE "credential_source=EcsContainer\n", {RELATIVE ".evil/x"}, -EINVAL, 0},
		{ROLE "credential_source=EcsContainer\n", {NULL}, -ENOTSUP, 0},
		{ROLE "credential_source=Ec2InstanceMetadata\n", {NULL}, 0, H5_FROM_INSTANCE},
		{ROLE "credential_source=Ec2InstanceMetadata\n", {NO_INSTANCE}, -ENOTSUP, 0},
		{ROLE "credential_source=Ec2InstanceMetadata\n",
		 {"AWS_EC2_METADATA_SERVICE_ENDPOINT=server"},
		 -EINVAL,
		 0},
		{ROLE "credential_source=Environment\n", {RELATIVE "/v2/x"}, -ENOTSUP, 0},
		{ROLE, {RELATIVE "/v2/x"}, -ENOTSUP, 0},
		{ROLE "source_profile=b\n[b]\n" KEYS, {NULL}, 0, H5_FROM_KEYS},
		{ROLE "source_profile=default\n" KEYS, {NULL}, 0, H5_FROM_KEYS},
		{ROLE "source_profile=b\n[b]\n", {NULL}, -ENOTSUP, 0},
		{ROLE "source_profile=b\n[b]\nrole_arn=other\n" KEYS, {NULL}, -ENOTSUP, 0},
		{ROLE "source_profile=b\n[b]\naws_access_key_id=A B\naws_secret_access_key=S\n",
		 {NULL},
		 -EINVAL,
		 0},
		{ROLE "source_profile=b\nmfa_serial=m\n[b]\n" KEYS, {NULL}, -ENOTSUP, 0},
		{ROLE "web_identity_token_file=/t\n", {NULL}, 0, H5_FROM_TOKEN},
		{ROLE "web_identity_token_file=/t\n", {"AWS_ENDPOINT_URL_STS=http://server"}, -EINVAL, 0},
		/* The keys are shown to the token server, too. */
		{ROLE "source_profile=b\n[b]\n" KEYS, {"AWS_ENDPOINT_URL_STS=http://server"}, -EINVAL, 0},
		{ROLE "source_profile=b\n[b]\n" KEYS,
		 {"AWS_ENDPOINT_URL_STS=http://127.0.0.1"},
		 0,
		 H5_FROM_KEYS},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_identity identity = {0};
		int rc = find_identity(cases[i].profiles, cases[i].variables, &identity);

		ck_assert_msg(rc == cases[i].rc, "%zu: %d", i, rc);
		if (!rc) {
			ck_assert_int_eq(identity.from, cases[i].from);
			ck_assert_int_eq(identity.becomes, cases[i].from != H5_FROM_TOKEN);
			ck_assert_str_eq(identity.role, "arn");
			ck_assert_str_eq(identity.session, "h5fs");
		}
		release_identity(&identity);
	}
}
END_TEST

/* From a text that nothing follows. */
static bool read_profile(const char *text, const char *name, struct h5_profile *profile)
{
	const size_t n = strlen(text);
	char *exact = malloc(n + !n);

	memcpy(exact, text, n);
	*profile = (struct h5_profile){.found = false};
	ck_assert_int_eq(h5_profile_read(profile, exact, n, name), 0);
	free(exact);
	return profile->found;
}

START_TEST(lines_of_sections)
{
	static const struct {
		const char *text, *name;
		bool found;
	} all[] = {{"[b]", "b", true},
		   {"[b", "b", false},
		   {"[", "b", false},
		   {"[", "", false},
		   {"[]", "b", false},
		   {"[b]\n", "b", true},
		   {"[b\n]", "b", false},
		   {"\n[b]", "b", true},
		   {"[a]\r\n[b]\r\n", "b", true},
		   {"[ b\t]", "b", true},
		   {"[b] # of b", "b", true},
		   {"b]", "b", false},
		   {" [b]", "b", false},
		   {"#[b]", "b", false},
		   {";[b]", "b", false},
		   {"[bb]", "b", false},
		   {"[b b]", "b", false},
		   {"[profile b]", "b", true},
		   {"[profile\t b ]", "b", true},
		   {"[ profile b]", "b", true},
		   {"[profileb]", "b", false},
		   {"[profile_b]", "b", false},
		   {"[Profile b]", "b", false},
		   {"[profile]", "profile", true},
		   {"[profile ]", "profile", true},
		   {"[profile profile]", "profile", true},
		   {"[profile p]", "profile p", false}};
	struct h5_profile profile;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		ck_assert_msg(read_profile(all[i].text, all[i].name, &profile) == all[i].found, "%s",
			      all[i].text);
		h5_profile_release(&profile);
	}
}
END_TEST

/* The first one that says something counts, of each section of that name. */
START_TEST(lines_of_settings)
{
	static const struct {
		const char *text, *region;
	} all[] = {{"[b]\nregion=r", "r"},
		   {"[b]\nregion\t= r s \r\n", "r s"},
		   {"[b]\nregion=r=s\n", "r=s"},
		   {"[b]\nregion=\n", NULL},
		   {"[b]\nregion=", NULL},
		   {"[b]\nregion= \nregion=r", "r"},
		   {"[b]\nregion=r\nregion=s", "r"},
		   {"[b]\nregion", NULL},
		   {"[b]\nregion r\n", NULL},
		   {"[b]\nregions=r\n", NULL},
		   {"[b]\n=r\n", NULL},
		   {"[b]\n region=r\n", NULL},
		   {"[b]\n#region=r\n;region=s\n", NULL},
		   {"[b]\n\n\nregion=r", "r"},
		   {"region=r\n[b]", NULL},
		   {"[b]\n[c]\nregion=r", NULL},
		   {"[b]\n[c\nregion=r", NULL},
		   {"[c]\nregion=s\n[b]\nregion=r\n[c]\nregion=t", "r"},
		   {"[b]\n[c]\nregion=s\n[b]\nregion=r", "r"}};
	struct h5_profile profile;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		ck_assert(read_profile(all[i].text, "b", &profile));
		ck_assert_msg(!profile.region == !all[i].region &&
				      (!profile.region || !strcmp(profile.region, all[i].region)),
			      "%s: %s", all[i].text, profile.region);
		h5_profile_release(&profile);
		ck_assert_ptr_null(profile.region);
	}
}
END_TEST

/* Without a role: the environment goes before the profile, the profile before what else there is. */
START_TEST(who_comes_first)
{
	static const struct {
		const char *profiles, *variables[VARIABLES];
		int rc;
		enum h5_identity_from from;
	} cases[] = {
		{ROLE, {"AWS_ACCESS_KEY_ID=A", "AWS_SECRET_ACCESS_KEY=S"}, 0, H5_FROM_KEYS},
		{"", {"AWS_ACCESS_KEY_ID=A", NO_INSTANCE}, -EACCES, 0},
		{"", {"AWS_SECRET_ACCESS_KEY=S", NO_INSTANCE}, -EACCES, 0},
		{"[default]\n" KEYS, {RELATIVE "/v2/x"}, 0, H5_FROM_KEYS},
		{"[default]\naws_session_token=T\n" KEYS, {NULL}, 0, H5_FROM_FILES},
		{"[default]\n" KEYS, {"AWS_PROFILE=none"}, -EINVAL, 0},
		{"[b]\n" KEYS, {"AWS_PROFILE=b"}, 0, H5_FROM_KEYS},
		/* Keys in front of all sections, or in another section, belong to no profile. */
		{KEYS "[default]\nregion=r\n", {RELATIVE "/v2/x"}, 0, H5_FROM_CONTAINER},
		{"[b]\n" KEYS "[default]\nregion=r\n", {RELATIVE "/v2/x"}, 0, H5_FROM_CONTAINER},
		{"",
		 {"AWS_WEB_IDENTITY_TOKEN_FILE=/t", "AWS_ROLE_ARN=arn", RELATIVE "/v2/x"},
		 0,
		 H5_FROM_TOKEN},
		{"", {"AWS_WEB_IDENTITY_TOKEN_FILE=/t", RELATIVE "/v2/x"}, 0, H5_FROM_CONTAINER},
		{"", {"AWS_ROLE_ARN=arn", RELATIVE "/v2/x"}, 0, H5_FROM_CONTAINER},
		{"[default]\ncredential_process=p\n", {RELATIVE "/v2/x"}, -ENOTSUP, 0},
		{"[default]\nsso_start_url=u\n", {RELATIVE "/v2/x"}, -ENOTSUP, 0},
		{"", {NULL}, 0, H5_FROM_INSTANCE},
		{"", {"AWS_EC2_METADATA_DISABLED=false"}, 0, H5_FROM_INSTANCE},
		{"", {NO_INSTANCE}, -EACCES, 0},
		{"[default]\naws_access_key_id=A B\naws_secret_access_key=S\n", {NULL}, -EINVAL, 0},
		{"", {"AWS_ENDPOINT_URL=server"}, -EINVAL, 0},
		{"", {"AWS_ENDPOINT_URL_S3=server"}, -EINVAL, 0},
		{"", {"AWS_ENDPOINT_URL_STS=server"}, -EINVAL, 0},
		{"", {"AWS_REGION=a/b"}, -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_identity identity = {0};
		int rc = find_identity(cases[i].profiles, cases[i].variables, &identity);

		ck_assert_msg(rc == cases[i].rc, "%zu: %d", i, rc);
		if (!rc) {
			ck_assert_msg(identity.from == cases[i].from, "%zu: %d", i, identity.from);
			ck_assert(!identity.becomes);
		}
		release_identity(&identity);
	}
}
END_TEST

/* ---- servers ---- */

/* Everything that says where a server is: the first of them counts. */
START_TEST(servers)
{
	static const struct {
		const char *profile, *variables[VARIABLES], *endpoint; /* of the mount */
		const char *region, *store, *sts;		       /* what is found */
	} cases[] = {
		{"", {NULL}, NULL, "r", NULL, "https://sts.r.amazonaws.com/"},
		{"",
		 {"AWS_REGION=", "AWS_DEFAULT_REGION=d"},
		 NULL,
		 "d",
		 NULL,
		 "https://sts.d.amazonaws.com/"},
		{"", {"AWS_DEFAULT_REGION=d"}, NULL, "r", NULL, "https://sts.r.amazonaws.com/"},
		{"region=p\n", {"AWS_REGION="}, NULL, "p", NULL, "https://sts.p.amazonaws.com/"},
		{"region=p\n", {NULL}, NULL, "r", NULL, "https://sts.r.amazonaws.com/"},
		{"", {"AWS_REGION="}, NULL, "us-east-1", NULL, "https://sts.us-east-1.amazonaws.com/"},
		{"endpoint_url=http://p\n", {NULL}, NULL, "r", "http://p", "http://p"},
		{"endpoint_url=http://p\n", {"AWS_ENDPOINT_URL=http://e"}, NULL, "r", "http://e", "http://e"},
		{"",
		 {"AWS_ENDPOINT_URL=http://e", "AWS_ENDPOINT_URL_S3=http://s"},
		 NULL,
		 "r",
		 "http://s",
		 "http://e"},
		{"",
		 {"AWS_ENDPOINT_URL=http://e", "AWS_ENDPOINT_URL_STS=http://t"},
		 NULL,
		 "r",
		 "http://e",
		 "http://t"},
		{"",
		 {"AWS_ENDPOINT_URL_S3=http://s"},
		 "https://m",
		 "r",
		 "https://m",
		 "https://sts.r.amazonaws.com/"},
		{"", {"AWS_ENDPOINT_URL=s3://b"}, NULL, NULL, NULL, NULL},
		{"", {NULL}, "server", NULL, NULL, NULL},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_identity identity = {0};
		struct h5_s3 s3 = {0};
		char text[128];
		int rc;

		snprintf(text, sizeof text, "[default]\n%s", cases[i].profile);
		/* Nobody asks, so it does not matter where credentials would come from. */
		rc = find_at(text, cases[i].variables, cases[i].endpoint, true, &identity, &s3);
		ck_assert_msg(rc == (cases[i].region ? 0 : -EINVAL), "%zu: %d", i, rc);
		ck_assert_int_eq(identity.from, H5_FROM_NOBODY);
		if (!rc) {
			ck_assert_str_eq(s3.region, cases[i].region);
			ck_assert_str_eq(identity.sts_region, cases[i].region);
			ck_assert_pstr_eq(s3.endpoint, cases[i].store);
			ck_assert_pstr_eq(identity.sts, cases[i].sts);
		}
		free(s3.endpoint);
		release_identity(&identity);
	}
}
END_TEST

START_TEST(machines)
{
	static const char *const cases[][3] = {
		{NULL, NULL, "http://169.254.169.254"},
		{NULL, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv6", "http://[fd00:ec2::254]"},
		{NULL, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=ipv4", "http://169.254.169.254"},
		{"AWS_EC2_METADATA_SERVICE_ENDPOINT=http://x/", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv6",
		 "http://x"},
		{"AWS_EC2_METADATA_SERVICE_ENDPOINT=http://x/y", NULL, "http://x/y"}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *const variables[VARIABLES] = {cases[i][0] ? cases[i][0] : cases[i][1],
							  cases[i][0] ? cases[i][1] : NULL};
		struct h5_identity identity = {0};

		ck_assert_int_eq(find_identity("", variables, &identity), 0);
		ck_assert_int_eq(identity.from, H5_FROM_INSTANCE);
		ck_assert_str_eq(identity.url, cases[i][2]);
		release_identity(&identity);
	}
}
END_TEST

/* All that a role is asked for with. */
START_TEST(texts_of_roles)
{
	const char *const variables[VARIABLES] = {"AWS_WEB_IDENTITY_TOKEN_FILE=/t", "AWS_ROLE_ARN=a",
						  "AWS_ROLE_SESSION_NAME=n"};
	struct h5_identity identity = {0};

	ck_assert_int_eq(find_identity(ROLE "source_profile=b\nexternal_id=e\nrole_session_name=n\n[b]\n" KEYS
					    "aws_session_token=t\n",
				       (const char *const[VARIABLES]){NULL}, &identity),
			 0);
	ck_assert_str_eq(identity.external, "e");
	ck_assert_str_eq(identity.session, "n");
	ck_assert_str_eq(identity.keys.key, "A");
	ck_assert_str_eq(identity.keys.secret, "S");
	ck_assert_str_eq(identity.keys.token, "t");
	release_identity(&identity);
	ck_assert_int_eq(find_identity(ROLE "web_identity_token_file=/t\nrole_session_name=n\n",
				       (const char *const[VARIABLES]){NULL}, &identity),
			 0);
	ck_assert_str_eq(identity.session, "n");
	ck_assert_str_eq(identity.file, "/t");
	release_identity(&identity);
	ck_assert_int_eq(find_identity("", variables, &identity), 0);
	ck_assert_str_eq(identity.role, "a");
	ck_assert_str_eq(identity.session, "n");
	ck_assert_str_eq(identity.file, "/t");
	release_identity(&identity);
	ck_assert_int_eq(
		find_identity("",
			      (const char *const[VARIABLES]){"AWS_ACCESS_KEY_ID=A", "AWS_SECRET_ACCESS_KEY=S",
							     "AWS_SESSION_TOKEN=t"},
			      &identity),
		0);
	ck_assert_str_eq(identity.keys.token, "t");
	ck_assert_int_eq(identity.from, H5_FROM_KEYS);
	release_identity(&identity);
}
END_TEST

/* Why there are none: the user reads it. */
START_TEST(reasons)
{
	static const struct {
		const char *profiles, *variables[VARIABLES], *why;
	} cases[] = {
		{"[default]\ncredential_process=p\n", {NULL}, "credential_process"},
		{"[default]\nsso_session=u\n", {NULL}, "single sign-on"},
		{"", {NO_INSTANCE}, "no credentials were found"},
		{"", {"AWS_PROFILE=none"}, "AWS_PROFILE"},
		{ROLE "mfa_serial=m\n", {NULL}, "mfa_serial"},
		{ROLE, {NULL}, "nothing that h5fs can ask for the role with"},
		{ROLE "source_profile=b\n", {NULL}, "source_profile"},
		{"", {RELATIVE ".x"}, "AWS_CONTAINER_CREDENTIALS_*_URI"},
		{"", {"AWS_EC2_METADATA_SERVICE_ENDPOINT=x"}, "AWS_EC2_METADATA_SERVICE_ENDPOINT"},
		{"", {"AWS_ACCESS_KEY_ID=A B", "AWS_SECRET_ACCESS_KEY=S"}, "printable bytes"},
		{"", {"AWS_REGION=a/b"}, "makes no sense"},
		{ROLE "web_identity_token_file=/t\n",
		 {"AWS_ENDPOINT_URL_STS=http://x"},
		 "AWS_ENDPOINT_URL_STS"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_identity identity = {0};

		ck_assert_int_ne(find_identity(cases[i].profiles, cases[i].variables, &identity), 0);
		ck_assert_msg(strstr(last_why, cases[i].why), "%s: %s", cases[i].why, last_why);
		release_identity(&identity);
	}
}
END_TEST

/* Both files of a profile, which are in the home directory unless variables say where. */
START_TEST(files_of_profiles)
{
	struct h5_identity identity = {0};
	struct h5_s3 s3 = {0};
	const char *why;
	bool fired = true;

	clear_environment();
	setenv("HOME", "/no/home", 1);
	ck_assert_int_eq(h5_identity_find(&identity, &s3, NULL, true, &why), 0);
	ck_assert_str_eq(identity.files[0], "/no/home/.aws/credentials");
	ck_assert_str_eq(identity.files[1], "/no/home/.aws/config");
	ck_assert_str_eq(identity.profile, "default");
	release_identity(&identity);
	/* There is memory for both names, or an error. */
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_identity_find(&identity, &s3, NULL, true, &why);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM && !strcmp(why, "no memory")));
		if (!rc)
			ck_assert(!strcmp(identity.files[0], "/no/home/.aws/credentials") &&
				  !strcmp(identity.files[1], "/no/home/.aws/config"));
		release_identity(&identity);
	}
	setenv("AWS_SHARED_CREDENTIALS_FILE", "/a", 1);
	setenv("AWS_CONFIG_FILE", "/b", 1);
	setenv("AWS_PROFILE", "p", 1);
	ck_assert_int_eq(h5_identity_find(&identity, &s3, NULL, true, &why), 0);
	ck_assert_str_eq(identity.files[0], "/a");
	ck_assert_str_eq(identity.files[1], "/b");
	ck_assert_str_eq(identity.profile, "p");
	release_identity(&identity);
	clear_environment();
	ck_assert_int_eq(h5_identity_find(&identity, &s3, NULL, true, &why), 0);
	ck_assert_ptr_null(identity.files[0]);
	ck_assert_ptr_null(identity.files[1]);
	release_identity(&identity);
}
END_TEST

static void is_read_as(const char *bytes, size_t n, size_t most, const char *expected)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	unsigned descriptors = unit_descriptors();
	char name[40], *text;

	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	text = h5_identity_read_file(name, most);
	ck_assert_pstr_eq(text, expected);
	ck_assert_uint_eq(unit_descriptors(), descriptors);
	free(text);
	close(fd);
}

START_TEST(files)
{
	static char full[100001];

	is_read_as("", 0, 5, "");
	is_read_as(" \t\r\n", 4, 5, "");
	is_read_as("\n a b\r\n", 7, 7, "a b");
	is_read_as("abcde", 5, 5, "abcde");
	is_read_as("abcdef", 6, 5, NULL);
	is_read_as("ab\0cd", 5, 9, NULL);
	is_read_as("abcd\0", 5, 9, NULL);
	memset(full, 'x', 100000);
	is_read_as(full, 100000, 100000, full);
	is_read_as(full, 100000, 99999, NULL);
	ck_assert_ptr_null(h5_identity_read_file("/no/file", 5));
	ck_assert_ptr_null(h5_identity_read_file("/dev/null", 5));
	ck_assert_ptr_null(h5_identity_read_file("/", 5));
}
END_TEST

/* What is found is whole, or there is an error: whatever lacks memory. */
START_TEST(memory_is_short_in_the_beginning)
{
	static const struct {
		const char *profiles, *variables[VARIABLES];
		enum h5_identity_from from;
	} cases[] = {
		{"",
		 {"AWS_ACCESS_KEY_ID=A", "AWS_SECRET_ACCESS_KEY=S", "AWS_SESSION_TOKEN=t",
		  "AWS_ENDPOINT_URL=http://e"},
		 H5_FROM_KEYS},
		{"", {"AWS_WEB_IDENTITY_TOKEN_FILE=/t", "AWS_ROLE_ARN=a"}, H5_FROM_TOKEN},
		{"", {RELATIVE "/x", TOKEN}, H5_FROM_CONTAINER},
		{"", {FULL "https://x/y", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/t"}, H5_FROM_CONTAINER},
		{"", {NULL}, H5_FROM_INSTANCE},
		{ROLE "credential_source=Ec2InstanceMetadata\nexternal_id=e\n",
		 {"AWS_PROFILE=default"},
		 H5_FROM_INSTANCE},
		{"[default]\naws_session_token=t\n" KEYS, {"AWS_PROFILE=default"}, H5_FROM_FILES},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			struct h5_identity identity = {0};
			struct h5_s3 s3 = {0};
			int rc;

			failing_allocation = n;
			rc = find_at(cases[i].profiles, cases[i].variables, NULL, false, &identity, &s3);
			fired = has_fired;
			failing_allocation = 0;
			/* A file that cannot be read for lack of memory is none, so its profile is not there.
			 */
			ck_assert_msg(!rc || (fired && (rc == -ENOMEM || rc == -EINVAL)), "%zu, %lu: %d", i,
				      n, rc);
			if (rc == -EINVAL)
				ck_assert(!identity.from && cases[i].variables[0] &&
					  !strncmp(cases[i].variables[0], "AWS_PROFILE", 11));
			if (rc == -ENOMEM)
				ck_assert_str_eq(last_why, "no memory");
			if (!rc) {
				ck_assert_int_eq(identity.from, cases[i].from);
				ck_assert(identity.profile && identity.files[0] && identity.files[1] &&
					  identity.sts);
			}
			free(s3.endpoint);
			release_identity(&identity);
		}
	}
}
END_TEST

/* The same while another profile is read: if its file cannot be, it has no keys, but it never has half of
 * what the file says. */
START_TEST(memory_is_short_for_another_profile)
{
	static const char *const variables[VARIABLES] = {NULL};
	unsigned without = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_identity identity = {0};
		struct h5_s3 s3 = {0};
		int rc;

		failing_allocation = n;
		rc = find_at(ROLE "source_profile=b\n[b]\naws_session_token=T\n" KEYS, variables, NULL, false,
			     &identity, &s3);
		fired = has_fired;
		failing_allocation = 0;
		without += rc == -ENOTSUP;
		ck_assert_msg(!rc || (fired && (rc == -ENOMEM || rc == -ENOTSUP)), "%lu: %d", n, rc);
		if (rc == -ENOMEM)
			ck_assert_str_eq(last_why, "no memory");
		if (!rc && identity.from == H5_FROM_KEYS) {
			ck_assert_str_eq(identity.keys.key, "A");
			ck_assert_str_eq(identity.keys.secret, "S");
			ck_assert_str_eq(identity.keys.token, "T");
			ck_assert_str_eq(identity.role, "arn");
		}
		free(s3.endpoint);
		release_identity(&identity);
	}
	ck_assert_uint_eq(without, 1);
}
END_TEST

/* There are keys, or an error. */
START_TEST(memory_is_short)
{
	char name[40];
	int fd = write_profiles("[default]\naws_session_token=T\n" KEYS, name), rc = -ENOMEM;
	struct h5_identity identity = {.from = H5_FROM_FILES, .profile = "default", .files = {name, NULL}};
	struct h5_grant grant;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_identity_read_files(&identity, &grant);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		/* The first one is for the file, which counts as none then. */
		ck_assert_int_eq(rc, !fired ? 0 : n == 1 ? -EINVAL : -ENOMEM);
		ck_assert_int_eq(!grant.key, rc != 0);
		ck_assert_int_eq(!grant.secret, rc != 0);
		ck_assert_int_eq(!grant.token, rc != 0);
		h5_grant_release(&grant);
	}
	close(fd);
}
END_TEST

UNIT_MAIN("identity", lines_of_sections, lines_of_settings, containers, a_token_in_a_file, roles_of_profiles,
	  who_comes_first, servers, machines, texts_of_roles, reasons, files_of_profiles, files,
	  memory_is_short_in_the_beginning, memory_is_short_for_another_profile, memory_is_short)

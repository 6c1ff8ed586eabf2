/* In whose name an object store is asked, by the environment and by profiles. */
#include "fault_alloc.h"
#include "remote/identity.h"
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

/* The environment is nothing but the files of profiles, and these variables: "NAME=VALUE", up to NULL. */
static int find_identity(const char *text, const char *const variables[VARIABLES],
			 struct h5_identity *identity)
{
	struct h5_s3 s3 = {0};
	const char *why = NULL;
	char name[40];
	int rc, fd = write_profiles(text, name);

	clearenv();
	setenv("AWS_REGION", "r", 1);
	setenv("AWS_CONFIG_FILE", "/no/file", 1);
	setenv("AWS_SHARED_CREDENTIALS_FILE", name, 1);
	for (size_t i = 0; i < VARIABLES && variables[i]; i++)
		putenv((char *)variables[i]);
	rc = h5_identity_find(identity, &s3, NULL, false, &why);
	close(fd);
	free(s3.endpoint);
	ck_assert(!rc || strcmp(why, "no memory"));
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
		ck_assert(fired ? rc == -ENOMEM || rc == -EINVAL : !rc);
		ck_assert_int_eq(!grant.key, rc != 0);
		ck_assert_int_eq(!grant.secret, rc != 0);
		ck_assert_int_eq(!grant.token, rc != 0);
		h5_grant_release(&grant);
	}
	close(fd);
}
END_TEST

UNIT_MAIN("identity", containers, a_token_in_a_file, roles_of_profiles, who_comes_first, memory_is_short)

"""Logging in through an OAuth provider. One row of a table is one provider; the environment says which are in use."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kaiwa.apps.gateway.cookies import Seal
from kaiwa.apps.gateway.identities import Identities
from kaiwa.apps.user import User
from kaiwa.apps.work.calling import Calling
from kaiwa.errors import Refused

_TIMEOUT_S = 20.0
_STATE_S = 600


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider's pages are. `{domain}` in an address comes from `OAUTH_<ID>_DOMAIN`."""

    id: str
    name: str
    authorize_url: str
    token_url: str
    user_url: str
    scope: str
    identify: Callable[[Mapping[str, Any]], str]

    def setting(self, name: str) -> str:
        """What the environment says: `OAUTH_GITHUB_CLIENT_ID` for "CLIENT_ID"."""
        return os.environ.get(f"OAUTH_{self.id.upper().replace('-', '_')}_{name}", "")

    def url(self, template: str) -> str:
        """An address, complete."""
        return template.format(domain=self.setting("DOMAIN"))


def _email(user: Mapping[str, Any]) -> str:
    return str(user.get("email") or user.get("preferred_username") or user["sub"])


def _open_id(id: str, name: str, base: str, *, authorize: str, token: str, user: str) -> Provider:
    return Provider(id, name, base + authorize, base + token, base + user, "openid profile email", _email)


PROVIDERS = (
    Provider(
        "github",
        "GitHub",
        "https://github.com/login/oauth/authorize",
        "https://github.com/login/oauth/access_token",
        "https://api.github.com/user",
        "user:email",
        lambda user: str(user["login"]),
    ),
    Provider(
        "google",
        "Google",
        "https://accounts.google.com/o/oauth2/v2/auth",
        "https://oauth2.googleapis.com/token",
        "https://openidconnect.googleapis.com/v1/userinfo",
        "openid profile email",
        _email,
    ),
    Provider(
        "gitlab",
        "GitLab",
        "https://{domain}/oauth/authorize",
        "https://{domain}/oauth/token",
        "https://{domain}/oauth/userinfo",
        "openid profile email",
        _email,
    ),
    _open_id("auth0", "Auth0", "https://{domain}", authorize="/authorize", token="/oauth/token", user="/userinfo"),
    _open_id("okta", "Okta", "https://{domain}/oauth2/v1", authorize="/authorize", token="/token", user="/userinfo"),
    _open_id(
        "keycloak",
        "Keycloak",
        "https://{domain}/protocol/openid-connect",
        authorize="/auth",
        token="/token",
        user="/userinfo",
    ),
    Provider(
        "azure-ad",
        "Microsoft",
        "https://login.microsoftonline.com/{domain}/oauth2/v2.0/authorize",
        "https://login.microsoftonline.com/{domain}/oauth2/v2.0/token",
        "https://graph.microsoft.com/oidc/userinfo",
        "openid profile email",
        _email,
    ),
)


def configured() -> list[Provider]:
    """The providers that the environment has a client id and secret for."""
    return [one for one in PROVIDERS if one.setting("CLIENT_ID") and one.setting("CLIENT_SECRET")]


class OAuthDesk:
    """Answers `api/oauth/ID` and its callback."""

    def __init__(self, calling: Calling, identities: Identities, seal: Seal) -> None:
        self._calling = calling
        self._identities = identities
        self._seal = seal

    async def begin(self, request: Request) -> Response:
        """Send the person to the provider; a cookie remembers that it was this browser that asked."""
        provider = self._provider(request)
        state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "client_id": provider.setting("CLIENT_ID"),
            "redirect_uri": self._callback_url(request, provider),
            "response_type": "code",
            "scope": provider.scope,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        response = RedirectResponse(f"{provider.url(provider.authorize_url)}?{urlencode(query)}", status_code=303)
        kept = self._seal.close({"state": state, "verifier": verifier, "provider": provider.id})
        is_secure = request.url.scheme == "https"
        name = self._seal.name("oauth")
        response.set_cookie(name, kept, max_age=_STATE_S, httponly=True, secure=is_secure, samesite="lax", path="/")
        return response

    async def finish(self, request: Request) -> Response:
        """The person comes back: ask the provider who they are, and the app whether they may come in."""
        provider = self._provider(request)
        kept = self._seal.open(request.cookies.get(self._seal.name("oauth")))
        code, state = request.query_params.get("code", ""), request.query_params.get("state", "")
        is_ours = kept is not None and kept["provider"] == provider.id and secrets.compare_digest(kept["state"], state)
        if not code or kept is None or not is_ours:
            raise Refused("login", f"{provider.name} sent nobody back whom this browser had sent", hint="log in again")
        tokens, raw = await self._ask(provider, code, kept["verifier"], self._callback_url(request, provider))
        default = User(provider.identify(raw), raw.get("name"), {"provider": provider.id})
        arguments = (provider.id, tokens["access_token"], raw, default, tokens.get("id_token"))
        call = self._calling.call("oauth_callback", *arguments)
        user: User | None = await asyncio.wrap_future(self._calling.loop.submit(call))
        if user is None:
            raise Refused("login", f"{default.identifier} may not use this app")
        response = RedirectResponse(str(request.url_for("index")), status_code=303)
        self._identities.remember(user, response, request)
        response.delete_cookie(self._seal.name("oauth"), path="/")
        return response

    def _provider(self, request: Request) -> Provider:
        wanted = request.path_params["provider"]
        provider = next((one for one in configured() if one.id == wanted), None)
        if provider is None or not self._calling.has("oauth_callback"):
            raise Refused("not_found", f"nobody can log in through {wanted!r} here")
        return provider

    def _callback_url(self, request: Request, provider: Provider) -> str:
        return str(request.url_for("oauth_callback", provider=provider.id))

    async def _ask(
        self, provider: Provider, code: str, verifier: str, callback_url: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The provider's tokens, and what it says of the person."""
        import httpx2  # slow, and only for who logs in this way

        form = {
            "client_id": provider.setting("CLIENT_ID"),
            "client_secret": provider.setting("CLIENT_SECRET"),
            "code": code,
            "code_verifier": verifier,
            "grant_type": "authorization_code",
            "redirect_uri": callback_url,
        }
        try:
            async with httpx2.AsyncClient(timeout=_TIMEOUT_S, headers={"Accept": "application/json"}) as client:
                answer = await client.post(provider.url(provider.token_url), data=form)
                answer.raise_for_status()
                tokens = answer.json()
                authorization = {"Authorization": f"Bearer {tokens['access_token']}"}
                answer = await client.get(provider.url(provider.user_url), headers=authorization)
                answer.raise_for_status()
                return tokens, answer.json()
        except (httpx2.HTTPError, KeyError, ValueError) as error:
            raise Refused("login", f"{provider.name} did not say who this is: {error}", hint="log in again") from error

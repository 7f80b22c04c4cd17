"""The dashboard as a server: app.py and its pages, with the files it hands out behind the login as well."""

import streamlit as st
from starlette.middleware import Middleware

from pages.common.door import MembersOnly

app = st.App("app.py", middleware=[Middleware(MembersOnly)])
